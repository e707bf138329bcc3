//go:build !linux

package commit

import (
	"errors"
	"fmt"
	"os"
)

// A direct would read and write past the page cache.
type direct struct{ f *os.File }

func openDirect(o *opened) (*direct, error) {
	return nil, fmt.Errorf("commit: %s: direct I/O: %w", o.f.Name(), errors.ErrUnsupported)
}

func (*direct) readAt([]byte, int64) (int, error)  { return 0, errors.ErrUnsupported }
func (*direct) writeAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

func (*direct) blocks(off, n int64) (from, size int64) { return off, n }
