package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/interop/matrix"
	"github.com/goiwarp/iwarp/interop/wire"
)

// checkWire compares what our end has sent in a case with what the case expects.
func checkWire(dir string, c *matrix.Case) error {
	f, err := os.Open(filepath.Join(dir, matrix.CaptureFile))
	if err != nil {
		return err
	}
	sent, err := wire.Read(f, matrix.OurIP, matrix.OurIP6)
	if err = errors.Join(err, f.Close()); err == nil {
		err = c.Expected().Check(sent)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", matrix.CaptureFile, err)
	}
	return nil
}
