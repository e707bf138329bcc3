//go:build !linux

package backend

import (
	"errors"
	"os"
	"runtime"
	"sync"
)

// openFlags returns the flags for os.OpenFile.
func openFlags(c FileConfig) (int, error) {
	if c.Direct {
		return 0, errors.New("direct I/O is available on Linux only")
	}
	if c.ReadOnly {
		return os.O_RDONLY, nil
	}
	return os.O_RDWR, nil
}

func fileMedium(f *os.File, c FileConfig, _ geometry) (medium, Traits, error) {
	return &plainFile{f: f, always: c.Sync}, Traits{}, nil
}

// A plainFile has no more than every system has.
type plainFile struct {
	f      *os.File
	always bool // each write is a sync

	serial sync.Mutex // is held for one: of two at the same time one could get the error of the other
}

func (m *plainFile) readAt(p []byte, off int64) error { return readFull(m.f, p, off) }

func (m *plainFile) writeAt(p []byte, off int64) error {
	if m.always {
		m.serial.Lock()
		defer m.serial.Unlock()
	}
	if _, err := m.f.WriteAt(p, off); err != nil || !m.always {
		return err
	}
	if err := m.f.Sync(); err != nil {
		return lossError{err}
	}
	return nil
}

func (m *plainFile) writeDurably([]byte, int64) error { return errUnsupported }
func (m *plainFile) punch(int64, int64) error         { return errUnsupported }
func (m *plainFile) zero(int64, int64) error          { return errUnsupported }
func (m *plainFile) sync() error                      { return m.f.Sync() }
func (m *plainFile) close() error                     { return m.f.Close() }

// OpenDevice fails: block devices are opened on Linux only.
func OpenDevice(FileConfig) (Backend, error) {
	return nil, errors.New("backend: block devices are supported on Linux only, not on " + runtime.GOOS)
}
