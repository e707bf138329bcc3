package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/examples/ninep/rdma9p"
	"github.com/goiwarp/iwarp/internal/sockerr"
)

// serveTCP serves clients of trans=tcp until ctx ends, and closes their connections.
func serveTCP(ctx context.Context, l net.Listener, h rdma9p.Handler, log *slog.Logger) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer context.AfterFunc(ctx, func() { closeQuietly(l, log) })()
	for {
		c, err := sockerr.Accept(ctx, l)
		if err != nil {
			return err
		}
		running.Go(func() {
			defer context.AfterFunc(ctx, func() { closeQuietly(c, log) })()
			defer closeQuietly(c, log)
			if err := h.Handle(c, c); err != nil {
				log.Warn("9p: connection of trans=tcp ended", "peer", c.RemoteAddr().String(), "err", err)
			}
		})
	}
}

// closeQuietly closes c, which may be closed already.
func closeQuietly(c interface{ Close() error }, log *slog.Logger) {
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		log.Warn("9p: close", "err", err)
	}
}
