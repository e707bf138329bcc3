package rdma9p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
)

// A Handler serves 9P2000.L on a stream. A *p9.Server of github.com/hugelgupf/p9 is one, with DelayEnd.
//
// Handle reads requests from t and writes answers to r, in any order, until t ends, and returns when it has answered all requests
// that it has read. It must read a whole request before it answers it. One goroutine at a time may call Read, and one Write. Handle
// receives no Tflush: the adapter answers it.
type Handler interface {
	Handle(t io.ReadCloser, r io.WriteCloser) error
}

// Serve accepts connections from l, each of which h handles, until ctx or the listener ends; the error says which. It then reads no more
// requests, waits at most Config.DrainTimeout until h has answered the requests that it has, closes the connections, and returns. A
// handler that does not return keeps Serve from returning.
func Serve(ctx context.Context, l *iwarp.Listener, h Handler, cfg *Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	s := &server{cfg: cfg, handler: h}
	if cfg.SRQ > 0 {
		if s.shared, err = newSharedReceives(cfg.QP.PD, cfg.SRQ, cfg.MaxMsize); err != nil {
			return fmt.Errorf("9p: shared receives: %w", err)
		}
	}
	conns, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for {
		cr, e := l.Accept(ctx)
		if e != nil {
			err = e
			break
		}
		running.Go(func() { s.serve(conns, cr) })
	}
	stop()
	running.Wait()
	if s.shared != nil {
		if e := s.shared.close(); e != nil {
			cfg.Logger.Warn("9p: shared receives not closed", "err", e)
		}
	}
	return err
}

// A server is the state of one call of Serve.
type server struct {
	cfg     *Config
	handler Handler
	shared  *sharedReceives // nil without an SRQ
}

// serve serves one connection, from its request to its end.
func (s *server) serve(ctx context.Context, cr *iwarp.ConnRequest) {
	c := newConn(ctx, s.cfg, s.shared)
	c.log = s.cfg.Logger.With("peer", cr.RemoteAddr().String())
	qp, err := cr.Accept(ctx, c.config())
	if err != nil {
		c.log.Warn("9p: connection not accepted", "err", err)
		c.stop()
		if c.qp != nil {
			<-c.qp.Done()
		}
		c.release()
		return
	}
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(over) })
	if qp.MaxSizes().Inline < inlineSize {
		err = c.fail(fmt.Errorf("9p: Limits.MaxInline is less than %d", inlineSize))
	} else {
		err = s.handler.Handle(c, c)
	}
	close(over)
	watching.Wait()
	c.end(err)
}

// config returns the configuration of the QP.
func (c *conn) config() *iwarp.QPConfig {
	qc := c.cfg.QP
	if c.recvs.shared != nil {
		qc.SRQ = c.recvs.shared.srq
	}
	setup := qc.Setup
	qc.Setup = func(ctx context.Context, qp *iwarp.QP) error {
		c.qp, c.sends.qp = qp, qp
		if setup != nil {
			if err := setup(ctx, qp); err != nil {
				return err
			}
		}
		return c.recvs.prepare(c.cfg.QP.PD, qp)
	}
	return &qc
}

// Close ends the connection when all requests that the handler has are answered; Read then returns io.EOF.
func (c *conn) Close() error {
	c.stop()
	return nil
}

var (
	errNoVersion = fmt.Errorf("%w: no Tversion in time", ErrProtocol)
	errDrain     = errors.New("9p: requests not answered in time")
)

// watch aborts a connection that has no session in time, or whose requests are not answered in time when it is to end. It
// closes a connection that is to end and has no request.
func (c *conn) watch(over <-chan struct{}) {
	version := time.NewTimer(c.cfg.VersionTimeout)
	defer version.Stop()
	var drain <-chan time.Time
	stop := c.ctx.Done()
	for {
		select {
		case <-over:
			return
		case <-stop:
			timer := time.NewTimer(c.cfg.DrainTimeout)
			defer timer.Stop()
			stop, drain = nil, timer.C
			wake(c.idle)
		case <-c.idle:
			if c.rest() {
				_ = c.qp.Close() // end reports the outcome
			}
		case <-version.C:
			if !c.began() {
				_ = c.fail(errNoVersion)
			}
		case <-drain:
			_ = c.fail(errDrain)
		}
	}
}

// rest records that the connection is to end, and reports whether it may end now: then no further request is taken.
func (c *conn) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	c.closed = c.closed || len(c.sess.requests) == 0
	return c.closed
}

// end closes the connection, when the handler has returned err.
func (c *conn) end(err error) {
	c.mu.Lock()
	failed := c.err
	c.mu.Unlock()
	c.stop()
	closing := c.qp.Close() // does nothing after Abort
	<-c.qp.Done()
	c.release()
	switch err := errors.Join(failed, err, closing, c.qp.Err()); {
	case err != nil:
		c.log.Warn("9p: connection ended", "err", err)
	default:
		c.log.Info("9p: connection ended")
	}
}

// release frees memory and returns shared receives, when the QP has ended.
func (c *conn) release() {
	err := errors.Join(c.returnShared(), c.recvs.close(), c.sends.close())
	if err != nil {
		c.log.Warn("9p: memory of a connection not released", "err", err)
	}
}

// returnShared posts the receives that the QP has taken from the SRQ again.
func (c *conn) returnShared() error {
	if c.recvs.shared == nil || c.qp == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if c.held {
		errs = append(errs, c.postAgain())
	}
	for {
		for i := range c.pending {
			errs = append(errs, c.recvs.post(c.pending[i].ID))
		}
		n := c.qp.RecvCQ().Poll(c.wcs[:])
		if n == 0 {
			return errors.Join(errs...)
		}
		c.pending = c.wcs[:n]
	}
}
