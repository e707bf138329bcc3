package stag

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/internal/blockcopy"
)

// A PanicError reports that a method of a [Buffer] or [Flusher] panicked. It only ends the stream
// whose operation called the method, or makes its Commit fail.
type PanicError struct {
	Method string // "ReadAt", "WriteAt", "Acquire", "Release" or "Sync"; "Flush", "Touched" or "Failed" of a Flusher, "Integrity" of the check of octets
	Value  any    // what the method panicked with
	Stack  []byte // of the goroutine, in the format of runtime/debug.Stack
}

func (e *PanicError) Error() string {
	switch e.Method {
	case "Flush":
		return fmt.Sprintf("stag: the Flusher panicked: %v", e.Value)
	case "Touched", "Failed":
		return fmt.Sprintf("stag: the Flusher's %s panicked: %v", e.Method, e.Value)
	case "Integrity":
		return fmt.Sprintf("stag: the check of octets panicked: %v", e.Value)
	}
	return fmt.Sprintf("stag: the Buffer's %s panicked: %v", e.Method, e.Value)
}

// Unwrap returns what the method panicked with, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// write copies p to the octets at off of the Buffer. There is at least one.
func (r *Region) write(p []byte, off uint64) error {
	mem, err := r.acquire(off, len(p), true)
	if err != nil {
		return err
	}
	if mem != nil {
		blockcopy.Copy(mem, p)
		return r.release(off, len(p), true)
	}
	return r.writeAt(p, off)
}

// writeAt calls WriteAt of the Buffer, which must write all of p.
func (r *Region) writeAt(p []byte, off uint64) error {
	n, err := r.writeBuffer(p, off)
	if n != len(p) && err == nil {
		err = io.ErrShortWrite
	}
	return err
}

// acquire calls Acquire of a [MemoryBuffer]; release must follow. It returns nil without an error if the Buffer is not a
// MemoryBuffer, or requests ReadAt or WriteAt instead.
//
//go:noinline
func (r *Region) acquire(off uint64, n int, write bool) (mem []byte, err error) {
	b, ok := r.buf.(MemoryBuffer)
	if !ok {
		return nil, nil
	}
	defer caught("Acquire", &err)
	mem, err = b.Acquire(int64(off), n, write)
	if err != nil || mem == nil || len(mem) == n {
		return mem, err
	}
	b.Release(int64(off), n, write)
	return nil, fmt.Errorf("stag: Acquire has returned %d octets instead of %d", len(mem), n)
}

//go:noinline
func (r *Region) release(off uint64, n int, write bool) (err error) {
	defer caught("Release", &err)
	r.buf.(MemoryBuffer).Release(int64(off), n, write)
	return nil
}

// writeBuffer calls WriteAt of the Buffer.
//
//go:noinline
func (r *Region) writeBuffer(p []byte, off uint64) (n int, err error) {
	defer caught("WriteAt", &err)
	return r.buf.WriteAt(p, int64(off))
}

// readBuffer calls ReadAt of the Buffer.
//
//go:noinline
func (r *Region) readBuffer(p []byte, off uint64) (n int, err error) {
	defer caught("ReadAt", &err)
	return r.buf.ReadAt(p, int64(off))
}

// tellDirty calls Options.Dirty, which is Touched of a [Flusher].
//
//go:noinline
func (r *Region) tellDirty(off uint64, n int) (err error) {
	defer caught("Touched", &err)
	r.dirty(int64(off), int64(n))
	return nil
}

// tellFailed calls Options.Failed, which is Failed of a [Flusher].
//
//go:noinline
func (r *Region) tellFailed(off uint64, n int, cause error) (err error) {
	defer caught("Failed", &err)
	r.failed(int64(off), int64(n), cause)
	return nil
}

func caught(method string, err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Method: method, Value: v, Stack: debug.Stack()}
	}
}

// callers are the functions that call methods of a [Buffer], or of a [Flusher] and of what belongs
// to it.
var callers = [...]string{
	"stag.(*Region).writeBuffer", "stag.(*Region).readBuffer", "stag.(*Region).acquire", "stag.(*Region).release",
	"stag.(*Region).tellDirty", "stag.(*Region).tellFailed",
	"commit.(*Latch).call", "commit.syncs", "durable.checked.passes",
}

// InBuffer reports whether the calling goroutine is inside a method of a [Buffer] that a
// Region has called, or of a [Flusher] that makes a region durable. There it must not wait until
// no placement is in flight: it would wait for itself. InBuffer walks the stack, so it is only for rare
// calls; in return the data path need not record anything.
func InBuffer() bool {
	pcs := make([]uintptr, 64)
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs)
		if n == 0 {
			return false
		}
		frames := runtime.CallersFrames(pcs[:n])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if slices.ContainsFunc(callers[:], func(name string) bool { return strings.HasSuffix(f.Function, "/"+name) }) {
				return true
			}
		}
	}
}
