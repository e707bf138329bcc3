package transfer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// A trace is a file that receives a pcap. Its previous contents are kept until a connection is established. A connection ignores
// a trace that fails, so Close returns the first error of all.
type trace struct {
	*os.File
	empty  func() error // called before each Write
	failed atomic.Pointer[error]
}

// OpenTrace opens the file of a trace. copied is the file that is sent or received meanwhile, which must be another file; empty: there
// is none. If name is empty, OpenTrace returns nil: there is no trace.
func OpenTrace(name, copied string) (io.WriteCloser, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		quietly(f)
		return nil, err
	}
	if other, err := os.Stat(copied); err == nil && os.SameFile(info, other) {
		quietly(f)
		return nil, fmt.Errorf("the trace would be written to the file that is copied, %s", copied)
	}
	t := &trace{File: f, empty: func() error { return nil }}
	if info.Mode().IsRegular() {
		t.empty = sync.OnceValue(func() error { return f.Truncate(0) })
	}
	return t, nil
}

func (t *trace) Write(p []byte) (n int, err error) {
	if err = t.empty(); err == nil {
		n, err = t.File.Write(p)
	}
	if err != nil {
		t.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (t *trace) Close() error {
	err := t.File.Close()
	if first := t.failed.Load(); first != nil {
		err = errors.Join(fmt.Errorf("trace: %w", *first), err)
	}
	return err
}
