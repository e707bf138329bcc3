package cli

import "os"

// CanWrite returns an error, before a measurement that takes minutes, if its report could not be written to a file. An existing file
// is not changed, and no file is left behind if there was none. "" stands for no file.
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
