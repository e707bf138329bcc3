package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// A target is a file that is registered for the writer. All it does is to accept
// connections.
type target struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	file *commit.File
	mr   *iwarp.MR
	l    *iwarp.Listener
	pull bool // serve as in pull.go
}

// openTarget opens the file, of at least size octets, and listens.
func openTarget(ctx context.Context, addr, path string, size int64) (t *target, err error) {
	t = new(target)
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.file, err = commit.OpenFile(path, &commit.FileOptions{Size: size}); err != nil {
		return t, err
	}
	if n := t.file.Size(); n > math.MaxUint32 { // what one RemoteBuffer cannot say
		return t, fmt.Errorf("%s has %d octets; a log has less than 4 GiB", path, n)
	}
	if t.rnic, err = iwarp.Open(nil); err != nil {
		return t, err
	}
	if t.pd, err = t.rnic.AllocPD(); err != nil {
		return t, err
	}
	rights := stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead
	if t.mr, err = t.pd.RegisterBuffer(t.file, rights, &iwarp.MROptions{Durable: t.file}); err != nil {
		return t, err
	}
	t.l, err = t.rnic.Listen(ctx, "tcp", addr, nil)
	return t, err
}

// close aborts all connections.
func (t *target) close() {
	if t.rnic != nil {
		_ = t.rnic.Close()
	}
	if t.mr != nil {
		_ = t.mr.Close()
	}
	if t.file != nil {
		_ = t.file.Close()
	}
}

// accept takes connections until the target is closed. The writer learns from the private
// data where the file is.
func (t *target) accept(ctx context.Context) error {
	where, err := t.mr.Advertise(0, int(t.mr.Len())).AppendBinary(nil)
	if err != nil {
		return err
	}
	for {
		cr, err := t.l.Accept(ctx)
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		qp, err := cr.Accept(ctx, &iwarp.QPConfig{
			PD: t.pd, PrivateData: where,
			Commit: &iwarp.CommitOptions{Negotiate: true, StrictDurable: true},
		})
		if err == nil && t.pull {
			go t.servePull(ctx, qp)
		}
	}
}

// serve is the program of a target. It says where it listens in its first line.
func serve(ctx context.Context, addr, path string, size int64, out io.Writer) error {
	t, err := openTarget(ctx, addr, path, size)
	if err != nil {
		return err
	}
	defer t.close()
	fmt.Fprintln(out, t.l.Addr())
	return t.accept(ctx)
}
