//go:build !unix

package matrix

import (
	"errors"
	"os"
)

// stopProcess is not supported here. The cases run in a guest with Linux.
func stopProcess(*os.Process, bool) error { return errors.ErrUnsupported }
