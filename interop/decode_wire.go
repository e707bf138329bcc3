package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/interop/matrix"
	"github.com/goiwarp/iwarp/interop/wire"
)

// checkWire compares what our end has sent in a case with what the case expects.
func checkWire(dir string, c *matrix.Case) error {
	expected := c.Expected()
	b, err := os.ReadFile(filepath.Join(dir, matrix.CaptureFile))
	if err != nil {
		return err
	}
	sent, err := wire.Read(bytes.NewReader(b), matrix.OurIP, matrix.OurIP6)
	if err == nil {
		err = errors.Join(expected.Check(sent), expected.Upper.CheckAnswers(bytes.NewReader(b), matrix.OurIP, matrix.OurIP6))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", matrix.CaptureFile, err)
	}
	return nil
}
