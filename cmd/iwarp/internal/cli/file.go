package cli

import "os"

// CanWrite tells, before a measurement that takes minutes, whether its report can be written to a file. It makes the file if there is none.
// "" stands for no file.
func CanWrite(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}
