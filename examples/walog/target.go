package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/stag"
)

// A target is a file that is registered for the writer. It only accepts connections,
// each of which ends the one before.
type target struct {
	rnic *iwarp.RNIC
	file backing
	l    *iwarp.Listener
	pull bool // serve as in pull.go
}

// A backing is a durable file.
type backing interface {
	stag.Buffer
	stag.Flusher
	io.Closer
}

// openTarget opens the file, of at least size octets, and listens. It fails on a big-endian host: no writer could read the
// marks that other writers have left in the file.
func openTarget(ctx context.Context, addr, path string, size int64) (t *target, err error) {
	if bigEndian() {
		return nil, errors.New("a target needs a little-endian host")
	}
	f, err := commit.OpenFile(path, &commit.FileOptions{Size: size})
	if err != nil {
		return nil, err
	}
	t = &target{file: f}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if n := f.Size(); n > math.MaxUint32 { // more than one RemoteBuffer can describe
		return t, fmt.Errorf("%s has %d octets; a log has less than 4 GiB", path, n)
	}
	return t, t.listen(ctx, addr)
}

// bigEndian reports whether the host stores the follow-ons of Commits in big-endian order.
func bigEndian() bool { return binary.NativeEndian.Uint16([]byte{0, 1}) == 1 }

func (t *target) listen(ctx context.Context, addr string) (err error) {
	if t.rnic, err = iwarp.Open(nil); err != nil {
		return err
	}
	t.l, err = t.rnic.Listen(ctx, "tcp", addr, nil)
	return err
}

// close aborts all connections.
func (t *target) close() {
	if t.rnic != nil {
		_ = t.rnic.Close()
	}
	_ = t.file.Close()
}

// accept accepts connections until the target is closed.
func (t *target) accept(ctx context.Context) error {
	s := new(session)
	defer func() { s.end() }()
	for {
		cr, err := t.l.Accept(ctx)
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		s.end()
		s = &session{t: t}
		if err := s.begin(ctx, cr); err != nil {
			_ = cr.Reject(nil) // an error: it was answered
		}
	}
}

// A session is the connection of a writer.
type session struct {
	t     *target
	pd    *iwarp.PD // only for this connection: no other can name the file
	file  *iwarp.MR
	qp    *iwarp.QP
	tasks sync.WaitGroup
}

// begin registers the file, and accepts the connection. The private data tell the writer where the file is.
func (s *session) begin(ctx context.Context, cr *iwarp.ConnRequest) (err error) {
	t := s.t
	if s.pd, err = t.rnic.AllocPD(); err != nil {
		return err
	}
	rights := stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead
	if s.file, err = s.pd.RegisterBuffer(t.file, rights, &iwarp.MROptions{Durable: t.file}); err != nil {
		return err
	}
	where, err := s.file.Advertise(0, int(s.file.Len())).AppendBinary(nil)
	if err != nil {
		return err
	}
	s.qp, err = cr.Accept(ctx, &iwarp.QPConfig{
		PD: s.pd, PrivateData: where,
		Commit: &iwarp.CommitOptions{Negotiate: true, StrictDurable: true},
	})
	if err == nil && t.pull {
		s.tasks.Go(func() { s.servePull(ctx) })
	}
	return err
}

// end returns when no octet of the connection can be written any more, however long the disk takes. The last
// octets of the writer, which contain an older mark, may be in flight for longer than another writer takes to
// begin.
func (s *session) end() {
	if s.qp != nil {
		_ = s.qp.Abort()
		<-s.qp.Done()
	}
	s.tasks.Wait()
	if s.file != nil {
		_ = s.file.CloseContext(context.Background())
	}
	if s.pd != nil {
		_ = s.pd.Close()
	}
}

// serve is the program of a target. Its first line of output says where it listens.
func serve(ctx context.Context, addr, path string, size int64, out io.Writer) error {
	t, err := openTarget(ctx, addr, path, size)
	if err != nil {
		return err
	}
	defer t.close()
	if os.Getenv(childEnv) != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		program.WhenParentEnds(os.Stdin, cancel)
	}
	fmt.Fprintln(out, t.l.Addr())
	return t.accept(ctx)
}
