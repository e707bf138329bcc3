package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/interop/powercut"
	"github.com/goiwarp/iwarp/stag"
)

// A file is what is registered.
type file struct {
	buffer  iwarp.Buffer
	durable stag.Flusher
}

// open opens the data file as a backing of package commit, or as something less.
func open(backing, sabotage string) (f file, err error) {
	if sabotage == powercut.Async {
		m, err := openLazy(dataFile, powercut.FileSize)
		return file{m, m}, err
	}
	f, err = openAs(backing, dataFile, powercut.FileSize)
	if sabotage == powercut.NoSync {
		f.durable = promise{}
	}
	return f, err
}

func openAs(backing, path string, size int64) (file, error) {
	switch backing {
	case powercut.Mapped:
		m, err := commit.MapFile(path, size)
		return file{m, m}, err
	case powercut.Positioned, powercut.Direct:
		f, err := commit.OpenFile(path, &commit.FileOptions{Size: size, Direct: backing == powercut.Direct})
		return file{f, f}, err
	}
	return file{}, fmt.Errorf("no backing %q", backing)
}

// A promise flushes nothing.
type promise struct{}

func (promise) Flush(context.Context, int64, int64) error { return nil }

// A lazy mapping asks the system to write soon, and does not wait.
type lazy struct{ mem []byte }

func openLazy(path string, size int64) (*lazy, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return &lazy{mem}, err
}

func (l *lazy) Size() int64 { return int64(len(l.mem)) }

func (l *lazy) Atomic() bool { return true }

func (l *lazy) ReadAt(p []byte, off int64) (int, error) { return copy(p, l.mem[off:]), nil }

func (l *lazy) WriteAt(p []byte, off int64) (int, error) { return copy(l.mem[off:], p), nil }

func (l *lazy) Flush(context.Context, int64, int64) error { return unix.Msync(l.mem, unix.MS_ASYNC) }
