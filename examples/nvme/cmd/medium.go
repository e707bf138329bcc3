package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
)

// A medium is the back end of a namespace, whose size can be changed. An open Backend cannot change
// its size, and locks its file. So resize closes it and opens it again with another size, while all
// its users wait.
type medium struct {
	spec      backend.Spec
	resizable bool
	file      os.FileInfo // of the open file; nil: the back end is not a file
	size      int64       // of new views

	mu   sync.RWMutex // held, for reading, during each operation
	back backend.Backend
}

func openMedium(text string, resizable bool) (*medium, error) {
	spec, err := backend.ParseSpec(text)
	if err != nil {
		return nil, err
	}
	b, err := spec.Open()
	if err != nil {
		return nil, err
	}
	m := &medium{spec: spec, resizable: resizable, size: b.Size(), back: b}
	if spec.Kind == backend.KindFile {
		if m.file, err = os.Stat(spec.Path); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return m, nil
}

// view returns the medium as a Backend of its current size. A back end that cannot be resized is used directly.
func (m *medium) view() backend.Backend {
	if !m.resizable {
		return m.back
	}
	return newView(m)
}

func (m *medium) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.back.Close()
}

// end makes all written data durable and closes the medium. No operation can run between the two.
func (m *medium) end() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(m.back.Flush(context.Background()), m.back.Close())
}

// resize changes the size of later views. A file never shrinks: octets beyond the end of the views
// stay in it.
func (m *medium) resize(size int64) error {
	bs := int64(m.back.BlockSize())
	switch {
	case size < bs || size%bs != 0:
		return fmt.Errorf("%d octets are not a multiple of the block size %d", size, bs)
	case m.spec.Kind == backend.KindDevice:
		return errors.New("the size of a block device cannot be changed")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spec.Kind == backend.KindMemory {
		if err := m.copyMemory(size); err != nil {
			return err
		}
	} else if size > m.back.Size() {
		if err := m.growFile(size); err != nil {
			return err
		}
	}
	m.size = size
	return nil
}

// growFile opens the file again with a larger size. If that fails, it opens the file as it was. A failed sync must not be forgotten, so
// growFile syncs first. It refuses a file that was moved: the file now at its path does not contain what hosts have written.
func (m *medium) growFile(size int64) error {
	if m.spec.ReadOnly {
		return fmt.Errorf("the file is read-only, and has %d octets", m.back.Size())
	}
	if err := m.back.Flush(context.Background()); err != nil {
		return err
	}
	there, err := os.Stat(m.spec.Path)
	if err != nil || !os.SameFile(there, m.file) {
		return errors.Join(fmt.Errorf("%s is not the file that is open", m.spec.Path), err)
	}
	if err := m.back.Close(); err != nil {
		return err
	}
	larger := m.spec
	larger.Size = size
	b, err := larger.Open()
	if err != nil {
		var again error
		if b, again = m.spec.Open(); again != nil {
			return errors.Join(err, again)
		}
	}
	m.back = b
	return err
}

// copyMemory replaces memory by memory of another size. It does not copy zeros, so that no memory is
// allocated for them.
func (m *medium) copyMemory(size int64) error {
	ctx, other := context.Background(), m.spec
	other.Size = size
	b, err := other.Open()
	if err != nil {
		return err
	}
	piece, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	for off, end := int64(0), min(size, m.back.Size()); off < end; off += int64(len(piece)) {
		p := piece[:min(int64(len(piece)), end-off)]
		if err = m.back.ReadAt(ctx, p, off); err == nil && string(p) != string(zeros[:len(p)]) {
			err = b.WriteAt(ctx, p, off, false)
		}
		if err != nil {
			return errors.Join(err, b.Close())
		}
	}
	old := m.back
	m.back = b
	return old.Close()
}
