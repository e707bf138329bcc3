package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/sockerr"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

// A RejectError reports that the peer's application has refused the connection.
type RejectError struct {
	PrivateData []byte
	IRD, ORD    int // what the peer would have needed, -1 if it did not say
}

func (e *RejectError) Error() string { return "connection rejected by the peer" }

// rejection translates a refusal from packages mpa and sctp into a *[RejectError].
func rejection(err error) error {
	if rej, ok := errors.AsType[*mpa.RejectError](err); ok {
		return &RejectError{PrivateData: rej.PrivateData, IRD: rej.IRD, ORD: rej.ORD}
	}
	if refused, ok := errors.AsType[*sctp.RejectError](err); ok {
		return &RejectError{PrivateData: refused.PrivateData, IRD: refused.IRD, ORD: refused.ORD}
	}
	return err
}

// A lack describes a set-up that has failed.
type lack struct {
	missing   string // what the peer has not sent
	tls       string // the option that would make this side use TLS; empty: it does use TLS
	initiator bool
	secured   bool // the TLS handshake has ended on this side
	once      bool // an older MPA revision is not tried
	begun     bool // part of the missing message has arrived: the peer speaks MPA
}

// guess returns why the peer may have closed the connection; empty: nothing is known.
func (s *lack) guess() string {
	if s.begun {
		return ""
	}
	var may []string
	if s.tls != "" && s.initiator {
		may = append(may, "speak another protocol", "expect TLS ("+s.tls+")")
	}
	if s.secured {
		may = append(may, "have refused the certificate of this side, or that it has none (QPConfig.TLS)")
	}
	if s.once {
		may = append(may, "know only MPA revision 1 (MPAOptions.Revision)")
	}
	if len(may) == 0 {
		return ""
	}
	if last := len(may) - 1; last > 0 {
		may[last] = "or " + may[last]
	}
	return "; it may " + strings.Join(may, ", ")
}

// failure rewords err to say plainly why a connection could not be set up.
func (m *Manager) failure(err error, s lack) error {
	var f *transport.Fault
	here := errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
	alert := refusedByTLS(err)
	switch refused := m.refusal(); {
	case refused != nil && here:
		return refused
	case alert != nil:
		return errtext.Reword(err, "TLS: the peer has refused the connection: "+alert.Error())
	case errors.Is(err, mpa.ErrTLS) && s.tls != "":
		return errtext.Reword(err, "the peer uses TLS: set "+s.tls)
	case !errors.As(err, &f), f.Code != transport.MPAConnectionLost, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case here:
		return errtext.Reword(err, "the connection was closed on this side")
	case errors.Is(err, mpa.ErrNoReply), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), sockerr.Is(err, syscall.ECONNRESET),
		sockerr.Is(err, syscall.ECONNABORTED), errors.Is(err, syscall.EPIPE):
		if s.begun {
			s.missing = "all of " + s.missing
		}
		return errtext.Reword(err, "the peer closed the connection before it sent "+s.missing+s.guess())
	}
	return err
}

// refusedByTLS returns the alert with which the peer has ended TLS, or nil if there is none. In TLS 1.3 a client's handshake
// ends before the server has seen the client's certificate, so the server's refusal arrives when the Reply is due.
func refusedByTLS(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return op.Err
	}
	return nil
}

// tlsError returns an error that says what has failed, and what may be wrong with the peer.
func tlsError(err error) error {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return tlsFailure{fmt.Errorf("TLS handshake: the peer does not use TLS: %w", err)}
	case errors.Is(err, io.ErrUnexpectedEOF), sockerr.Is(err, syscall.ECONNRESET), sockerr.Is(err, syscall.ECONNABORTED):
		return tlsFailure{fmt.Errorf("TLS handshake: the peer closed the connection; it may not use TLS: %w", err)}
	}
	return tlsFailure{fmt.Errorf("TLS handshake: %w", err)}
}

// DialError adds to err which Dial has failed; errors of package net already say so.
func DialError(network, addr string, err error) error {
	if s := errtext.Plain(err); strings.HasPrefix(s, strings.TrimSuffix("dial "+network, " ")) {
		return fmt.Errorf("iwarp: %w", errtext.Clause(err))
	}
	return fmt.Errorf("iwarp: dial %s %s: %w", network, addr, errtext.Clause(err))
}

// listenError adds to err that Listen has failed; errors of package net already say so.
func listenError(err error) error {
	text := errtext.Plain(err)
	if !strings.HasPrefix(text, "listen") {
		text = "listen: " + text
	}
	return errtext.Reword(err, text)
}

// kernelError adds to an error what to do if the kernel has no SCTP.
func (m *Manager) kernelError(err error) error {
	if errors.Is(err, sctpkernel.ErrNoSCTP) {
		return errtext.Reword(errors.Join(m.cfg.Unsupported, err), errtext.Plain(err)+"; network \"sctp+udp\" is SCTP in user space")
	}
	return err
}
