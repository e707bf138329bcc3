package commitperf

import (
	"context"
	"path/filepath"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/commit"
)

// A local makes octets durable without a network, on the same disk as the targets.
type local struct {
	file *commit.File // nil: it takes no time
	page []byte
}

func openLocal(o options) (l *local, err error) {
	l = &local{page: peer.SourceOf(slot)}
	if o.medium != noMedium {
		l.file, err = commit.OpenFile(filepath.Join(o.dir, "local"), &commit.FileOptions{Size: slot})
	}
	return l, err
}

// sync writes a slot and makes it durable.
func (l *local) sync() error {
	if l.file == nil {
		return nil
	}
	if _, err := l.file.WriteAt(l.page, 0); err != nil {
		return err
	}
	return l.file.Flush(context.Background(), 0, slot)
}

func (l *local) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
