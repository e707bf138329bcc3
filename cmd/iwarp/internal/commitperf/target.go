package commitperf

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// A target has a medium with slots, and takes connections that push to them, or that it pulls
// from. It runs in a process of its own.
type target struct {
	pulls   bool
	file    *commit.File // nil: memory that nothing makes durable
	rnic    *iwarp.RNIC
	pd      *iwarp.PD
	mr      *iwarp.MR // the slots
	syncs   *iwarp.MR // the number of syncs: see counter
	serving sync.WaitGroup
}

// runTarget runs a target until its parent process has left.
func runTarget(ctx context.Context, o *options, stdout io.Writer) (err error) {
	ctx, cancel := peer.Left(ctx, os.Stdin)
	defer cancel()
	t := &target{pulls: o.pulls}
	if t.rnic, err = iwarp.Open(nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.open(o); err != nil {
		return err
	}
	l, err := peer.Listen("127.0.0.1", o.cc)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() }) // Close ends Accept
	peer.Announce(stdout, l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil // which is how it ends
			}
			return err
		}
		t.serving.Go(func() { _ = t.connection(ctx, c) }) // the client sees why it has ended
	}
}

func (t *target) open(o *options) (err error) {
	if t.pd, err = t.rnic.AllocPD(); err != nil {
		return err
	}
	if t.syncs, err = t.pd.RegisterBuffer(counter{t}, stag.RemoteRead, nil); err != nil {
		return err
	}
	const rights = stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead
	if o.medium == noMedium {
		t.mr, err = t.pd.RegisterMR(make([]byte, o.slots*slot), rights, nil)
		return err
	}
	if t.file, err = commit.OpenFile(filepath.Join(o.dir, t.name()), &commit.FileOptions{Size: int64(o.slots) * slot}); err != nil {
		return err
	}
	t.mr, err = t.pd.RegisterBuffer(t.file, rights, &iwarp.MROptions{Durable: t.file})
	return err
}

// name returns the name of the target's file.
func (t *target) name() string {
	if t.pulls {
		return "pulled"
	}
	return "pushed"
}

func (t *target) close() error {
	err := t.rnic.Close()
	t.serving.Wait()
	if t.file != nil {
		err = errors.Join(err, t.file.Close())
	}
	return err
}

// connection sets up a connection, and serves it if the target is to pull from it. The target
// takes no part in pushes.
func (t *target) connection(ctx context.Context, c net.Conn) error {
	setup, stop := context.WithTimeout(ctx, peer.Timeout)
	defer stop()
	cr, err := t.rnic.Server(setup, c, nil)
	if err != nil {
		return err
	}
	var g greeting
	if err := g.parse(cr.PrivateData()); err != nil {
		return errors.Join(err, cr.Reject(nil))
	}
	s := &server{target: t, slot: int(g)}
	to := t.mr.Advertise(s.slot*slot, slot)
	if to.Len == 0 {
		return errors.Join(iwarp.ErrBounds, cr.Reject(nil))
	}
	w := welcome{to, t.syncs.Advertise(0, counterLen)}
	s.qp, err = cr.Accept(setup, &iwarp.QPConfig{PD: t.pd, Commit: negotiated(), PrivateData: w.append(nil), Setup: s.setup})
	if err == nil && t.pulls {
		s.serve()
	}
	return err
}
