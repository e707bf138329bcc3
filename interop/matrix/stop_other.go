//go:build !unix

package matrix

import (
	"errors"
	"os"
)

// stopProcess cannot be done here. The cases run in a guest with Linux.
func stopProcess(*os.Process, bool) error { return errors.ErrUnsupported }
