package peer

import (
	"errors"
	"os"
	"runtime/pprof"
)

// Profiled runs f, with a CPU profile of it if file is not empty.
func Profiled(file string, f func() error) error {
	if file == "" {
		return f()
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return errors.Join(err, out.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, out.Close())
}
