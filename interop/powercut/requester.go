package powercut

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A Requester writes records to a target and keeps the ledgers, over all lives of the
// target. Its methods must be called one after the other.
type Requester struct {
	rnic    *iwarp.RNIC
	pd      *iwarp.PD
	l       *iwarp.Listener
	streams []*stream
}

// NewRequester makes a requester that has written nothing yet.
func NewRequester() (*Requester, error) {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return nil, err
	}
	r := &Requester{rnic: rnic}
	if r.pd, err = rnic.AllocPD(); err != nil {
		return nil, errors.Join(err, rnic.Close())
	}
	for i := range Streams {
		s, err := newStream(r.pd, i)
		if err != nil {
			return nil, errors.Join(err, rnic.Close())
		}
		r.streams = append(r.streams, s)
	}
	return r, nil
}

// Listen begins to wait for the target's next life, and returns the port of the loopback
// address to which the target must connect.
func (r *Requester) Listen(ctx context.Context) (port int, err error) {
	if r.l, err = r.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil); err != nil {
		return 0, err
	}
	return r.l.Addr().(*net.TCPAddr).Port, nil
}

// Meet waits for the target's connections, and checks the contents of its file.
func (r *Requester) Meet(ctx context.Context) error {
	for _, s := range r.streams {
		cr, err := r.l.Accept(ctx)
		if err != nil {
			return err
		}
		if err := s.connect(ctx, r.pd, cr); err != nil {
			return err
		}
	}
	for _, s := range r.streams {
		if err := s.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Run writes records until all connections are lost, which is not an error. A Commit that
// fails is one.
func (r *Requester) Run(ctx context.Context) error {
	ended := make(chan error, Streams)
	for _, s := range r.streams {
		go func() { ended <- s.run(ctx) }()
	}
	var errs []error
	for range r.streams {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Part closes the remaining connections to the target.
func (r *Requester) Part() {
	_ = r.l.Close()
	for _, s := range r.streams {
		s.hangUp()
	}
}

// Forget counts all required records as lost: the target's file can no longer be read.
func (r *Requester) Forget() {
	for _, s := range r.streams {
		s.forget()
	}
}

// Records returns how many records were acknowledged, and how many of these, or of those
// that a tail guaranteed, were lost.
func (r *Requester) Records() (acknowledged, lost int) {
	for _, s := range r.streams {
		acknowledged += s.acknowledged
		lost += s.lost
	}
	return acknowledged, lost
}

// News describes the losses that were found since its last call.
func (r *Requester) News() (news []string) {
	for _, s := range r.streams {
		news = append(news, s.news...)
		s.news = nil
	}
	return news
}

// Close ends everything.
func (r *Requester) Close() error { return r.rnic.Close() }

// Serve is the target's part: it registers the file, of FileSize octets, offers it on all
// connections to a requester, and returns when the last of them has ended, or ctx has.
func Serve(ctx context.Context, addr string, file iwarp.Buffer, durable stag.Flusher) error {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return err
	}
	defer rnic.Close() //nolint:errcheck // an error only means that connections were open
	pd, err := rnic.AllocPD()
	if err != nil {
		return err
	}
	mr, err := pd.RegisterBuffer(file, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &iwarp.MROptions{Durable: durable})
	if err != nil {
		return err
	}
	where, err := mr.Advertise(0, FileSize).AppendBinary(nil)
	if err != nil {
		return err
	}
	var qps []*iwarp.QP
	for range Streams {
		qp, err := rnic.Dial(ctx, "tcp", addr, &iwarp.QPConfig{
			PD: pd, PrivateData: where, Commit: &iwarp.CommitOptions{Negotiate: true, StrictDurable: true},
		})
		if err != nil {
			return fmt.Errorf("powercut: %w", err)
		}
		qps = append(qps, qp)
	}
	for _, qp := range qps {
		select {
		case <-qp.Done():
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
