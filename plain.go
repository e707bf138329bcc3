package iwarp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// The texts of errors name the package once, and say in plain words what has happened and
// what may be done about it; the chain behind them is complete.

// errorPrefix begins the errors of the package.
const errorPrefix = "iwarp: "

// A clause is an error whose text stands behind a colon of ours: without the name of a
// package in front.
type clause struct{ error }

func (c clause) Error() string { return plain(c.error) }
func (c clause) Unwrap() error { return c.error }

func plain(err error) string {
	s := err.Error()
	for _, prefix := range [...]string{errorPrefix, "stag: ", "commit: ", "mpa: ", "sctp: ", "transport: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	return s
}

// A reworded error has a text of its own in place of that of the chain.
type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.err }

// dialError says which Dial has failed; errors of package net say it themselves.
func dialError(network, addr string, err error) error {
	if s := plain(err); strings.HasPrefix(s, "dial "+network) {
		return fmt.Errorf("iwarp: %w", clause{err})
	}
	return fmt.Errorf("iwarp: dial %s %s: %w", network, addr, clause{err})
}

// A setUp is what is told of a set-up that has failed.
type setUp struct {
	missing   string // what the peer has not sent
	tls       string // where this side would be told to use TLS; empty: it does
	initiator bool
}

// failure says in plain words why a connection could not be set up.
func (r *RNIC) failure(err error, s setUp) error {
	var f *transport.Fault
	var terminated *TerminateError
	here := errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
	switch refused := r.welcome(); {
	case errors.As(err, &terminated):
		return err
	case refused != nil && here:
		return refused
	case errors.Is(err, mpa.ErrTLS) && s.tls != "":
		return &reworded{"the peer uses TLS: set " + s.tls, err}
	case !errors.As(err, &f), f.Code != transport.MPAConnectionLost, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case here:
		return &reworded{"the connection was closed on this side", err}
	case errors.Is(err, mpa.ErrNoReply), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		text := "the peer closed the connection before it sent " + s.missing
		if s.tls != "" && s.initiator {
			text += "; it may expect TLS (" + s.tls + ")"
		}
		return &reworded{text, err}
	}
	return err
}

// initiating is what is told to an initiator.
func (qp *QP) initiating(c net.Conn) setUp {
	s := setUp{missing: "an MPA Reply", initiator: true}
	if _, secure := c.(*tls.Conn); !secure && qp.cfg.TLS == nil {
		s.tls = "QPConfig.TLS"
	}
	return s
}

// tlsError says what has failed, and what may be wrong with the peer.
func tlsError(err error) error {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return fmt.Errorf("TLS handshake: the peer does not use TLS: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("TLS handshake: the peer closed the connection; it may not use TLS: %w", err)
	}
	return fmt.Errorf("TLS handshake: %w", err)
}

// listenError says that Listen has failed; errors of package net say it themselves.
func listenError(err error) error {
	if strings.HasPrefix(plain(err), "listen") {
		return clause{err}
	}
	return fmt.Errorf("listen: %w", clause{err})
}
