package streamperf

import (
	"context"
	"errors"
	"sync"

	"github.com/goiwarp/iwarp"
)

// A listening is a service that uses the verbs.
type listening struct {
	side

	l       *iwarp.Listener
	serving sync.WaitGroup
}

// An acceptor accepts a connection request, and serves the connection until it ends.
type acceptor func(ctx context.Context, n side, cr *iwarp.ConnRequest) error

func newListening(ctx context.Context, accept acceptor) (s *listening, err error) {
	s = new(listening)
	if s.side, err = newSide(); err != nil {
		return nil, err
	}
	if s.l, err = s.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil); err != nil {
		return nil, errors.Join(err, s.rnic.Close())
	}
	s.serving.Go(func() {
		_ = s.l.Serve(ctx, func(cr *iwarp.ConnRequest) { _ = accept(ctx, s.side, cr) }) // the client sees why it has ended
	})
	return s, nil
}

func (s *listening) addr() string { return s.l.Addr().String() }

// close ends the connections, too.
func (s *listening) close() error {
	err := errors.Join(s.l.Close(), s.rnic.Close())
	s.serving.Wait()
	return err
}
