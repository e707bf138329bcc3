package commit

import (
	"errors"

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
// return an [*Error] or an errno.
func NewBuffer(b SyncBuffer) (*Buffer, error) {
	if b == nil || b.Size() <= 0 {
		return nil, errors.New("commit: a buffer needs octets")
	}
	return &Buffer{b, newGroup(b.Size(), true, func([]Range) error { return b.Sync() })}, nil
}

// WriteAt writes octets, and remembers that they are to be synced.
func (b *Buffer) WriteAt(p []byte, off int64) (int, error) {
	began := b.began()
	n, err := b.SyncBuffer.WriteAt(p, off)
	b.wrote(began, off, len(p), err)
	return n, err
}
