package commit

import (
	"errors"
	"io"

	"github.com/goiwarp/iwarp/stag"
)

// A SyncBuffer is a buffer of the user's own that can make durable what was written to
// it.
type SyncBuffer interface {
	stag.Buffer
	// Sync makes everything durable that was written before. It is not called twice at
	// once.
	Sync() error
}

// A Buffer is a SyncBuffer with group commit. Register it as the buffer and as the
// Durable of one region.
type Buffer struct {
	SyncBuffer
	*group
}

// NewBuffer wraps b. To choose the status that the peer is told of a failed Sync, let it
// return an [*Error] or an errno. After which of them octets are lost is as [Flusher] says.
func NewBuffer(b SyncBuffer) (*Buffer, error) {
	if b == nil || b.Size() <= 0 {
		return nil, errors.New("commit: a buffer needs octets")
	}
	return &Buffer{b, newGroup(b.Size(), true, func([]Range) error { return syncs(b.Sync) })}, nil
}

// syncs calls the user's function.
func syncs(sync func() error) (err error) {
	defer caught("Sync", &err)
	return sync()
}

var errWritePanicked = errors.New("commit: the buffer's WriteAt panicked")

// WriteAt writes octets, and remembers that they are to be synced. A panic of the user's WriteAt,
// which may have written any of them, is a write that has failed.
func (b *Buffer) WriteAt(p []byte, off int64) (n int, err error) {
	began, outcome := b.began(), errWritePanicked
	defer func() { b.wrote(began, off, int64(len(p)), outcome) }()
	n, err = b.SyncBuffer.WriteAt(p, off)
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	outcome = err
	return n, err
}

// Atomic is that of [stag.AtomicBuffer]: what the user's own buffer says. A Commit's follow-on
// is only stored in a buffer that is.
func (b *Buffer) Atomic() bool {
	a, ok := b.SyncBuffer.(stag.AtomicBuffer)
	return ok && a.Atomic()
}
