package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"
)

// lock waits until no other run uses the folder. The lock is an abstract socket,
// which disappears with its process however that ends.
func (l *lab) lock(ctx context.Context, folder string) (unlock func(), err error) {
	dir, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	// The name of a socket must be short.
	name := fmt.Sprintf("@iwarp-interop-%x", sha256.Sum256([]byte(dir)))
	for said := false; ; said = true {
		var lc net.ListenConfig
		s, err := lc.Listen(ctx, "unix", name)
		if err == nil {
			return func() { _ = s.Close() }, nil // it accepts no connection
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		if !said {
			l.say("another run uses %s; waiting for its end", dir)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
