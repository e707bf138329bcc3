package cli

import "os"

// CanWrite tells, before a measurement that takes minutes, whether its report can be written to a file. A file that is there keeps what it
// has, and where there is none it makes none. "" stands for no file.
func CanWrite(path string) error {
	if path == "" {
		return nil
	}
	_, absent := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil || absent == nil {
		return err
	}
	return os.Remove(path)
}
