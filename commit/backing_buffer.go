package commit

import (
	"errors"
	"io"

	"github.com/goiwarp/iwarp/stag"
)

// A SyncBuffer is a buffer that the user provides, and that can make durable what was
// written to it.
type SyncBuffer interface {
	stag.Buffer
	// Sync makes everything durable that was written before. It is never called
	// concurrently.
	Sync() error
}

// A Buffer is a SyncBuffer with group commit. Register it as the buffer and as the
// Durable of one region.
type Buffer struct {
	SyncBuffer
	*group
}

// NewBuffer wraps b. To choose the status that the peer receives after a failed Sync, return
// an [*Error] or an errno. [Flusher] says after which errors octets are lost.
func NewBuffer(b SyncBuffer) (*Buffer, error) {
	if b == nil || b.Size() <= 0 {
		return nil, errors.New("commit: a buffer needs octets")
	}
	return &Buffer{b, newGroup(b.Size(), true, func([]Range) error { return syncs(b.Sync) })}, nil
}

// syncs calls the user's Sync.
func syncs(sync func() error) (err error) {
	defer caught("Sync", &err)
	return sync()
}

var errWritePanicked = errors.New("commit: the buffer's WriteAt panicked")

// WriteAt writes octets, and records that they must be synced. A panic of the user's WriteAt,
// which may have written any of them, counts as a failed write.
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

// Atomic implements [stag.AtomicBuffer]: it returns what the user's buffer says. A Commit's
// follow-on is stored only in an atomic buffer.
func (b *Buffer) Atomic() bool {
	a, ok := b.SyncBuffer.(stag.AtomicBuffer)
	return ok && a.Atomic()
}
