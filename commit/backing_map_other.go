//go:build !linux

package commit

import (
	"errors"
	"fmt"
)

// A Mapping is a file mapped into memory, which this system does not support.
type Mapping struct{ *File }

// MapFile fails with an error that matches errors.ErrUnsupported.
func MapFile(path string, _ int64) (*Mapping, error) {
	return nil, fmt.Errorf("commit: mapping %s: %w", path, errors.ErrUnsupported)
}

// MapPMem fails with an error that matches errors.ErrUnsupported.
func MapPMem(path string, size int64) (*Mapping, error) { return MapFile(path, size) }
