package mpa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// past is a deadline that ends every wait.
var past = time.Unix(1, 0)

// bound ends the waits on s when ctx ends: one bound for a whole exchange, however
// slowly its octets arrive (RFC 5044 section 7.1.2 rule 10). The function
// that it returns removes the bound.
func bound(ctx context.Context, s transport.Stream) (unbound func() error) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		// If deadlines are not supported the connection itself must be aborted.
		if s.SetDeadline(past) != nil {
			_ = s.Abort() // nothing can be done about an error
		}
	})
	return func() error {
		if !stop() {
			<-done
		}
		return s.SetDeadline(time.Time{})
	}
}

// usualFrame is the length that most frames do not exceed.
const usualFrame = 64

// readFrame reads one start-up frame and not an octet more. wire is the part of it that
// has arrived, even if there is an error. readFrame fails as soon as that cannot begin a frame:
// a peer of another protocol may send less than a header, and wait.
func readFrame(s transport.Stream, parse func([]byte) (Frame, int, error)) (f Frame, wire []byte, err error) {
	wire = make([]byte, HeaderSize, usualFrame)
	if n, err := readFull(s, wire, begins); err != nil {
		return Frame{}, wire[:n], err
	}
	f, n, err := parse(wire)
	if err != nil {
		return Frame{}, wire, &transport.Fault{Code: transport.MPAStartup, Err: err}
	}
	wire = append(wire, make([]byte, n)...)
	f.PrivateData = wire[HeaderSize:]
	n, err = readFull(s, f.PrivateData, nil)
	return f, wire[:HeaderSize+n], err
}

// readFull fills p. check, if not nil, checks what has arrived while a part is missing; its error ends the set-up.
func readFull(s transport.Stream, p []byte, check func([]byte) error) (n int, err error) {
	for n < len(p) {
		m, err := s.Read(p[n:], transport.Park)
		n += m
		if n == len(p) {
			break
		}
		if check != nil {
			if wrong := check(p[:n]); wrong != nil {
				return n, &transport.Fault{Code: transport.MPAStartup, Err: wrong}
			}
		}
		if errors.Is(err, io.EOF) {
			return n, io.ErrUnexpectedEOF
		}
		if err != nil && !errors.Is(err, transport.ErrWoken) {
			return n, err
		}
	}
	return n, nil
}

// write writes a frame with one call.
func write(s transport.Stream, frame []byte) error {
	n, err := s.Write([][]byte{frame}, true)
	if err == nil && n < len(frame) {
		err = io.ErrShortWrite
	}
	return err
}

// failed closes s after a failed exchange, and returns the error that err means: a
// malformed frame (error 4), the end of ctx, or a lost connection (error 1). doing is what
// failed.
func failed(ctx context.Context, s transport.Stream, doing string, err error) error {
	_ = s.Close() // err is the news
	if _, ok := errors.AsType[*transport.Fault](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return ended(ctx, doing)
	}
	return &transport.Fault{Code: transport.MPAConnectionLost, Err: fmt.Errorf("%s: %w", doing, err)}
}

// ended returns the error of an exchange that ctx has ended, with the cause of ctx, if ctx has
// one of its own.
func ended(ctx context.Context, doing string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	return &endedError{doing, &transport.Fault{Code: transport.MPAConnectionLost, Err: err}}
}

// An endedError says what ctx has ended. For the protocol that is a lost connection, but the
// text of the error says what really happened.
type endedError struct {
	doing string
	fault *transport.Fault
}

func (e *endedError) Error() string { return "mpa: " + e.doing + ": " + e.fault.Err.Error() }
func (e *endedError) Unwrap() error { return e.fault }

// unanswered reports whether err, which occurred before any octet of a Reply, is the
// peer's FIN or RST.
func unanswered(ctx context.Context, err error) bool {
	var timeout net.Error
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return false // closed on this side
	}
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

// split separates the enhanced data from the private data of a frame.
func split(f *Frame) (d enhanced.Data, ulp []byte, err error) {
	if !f.Enhanced {
		return enhanced.Data{}, f.PrivateData, nil
	}
	d, err = enhanced.Parse(f.PrivateData)
	if err != nil {
		return d, nil, &transport.Fault{Code: transport.MPAStartup, Err: err}
	}
	return d, f.PrivateData[enhanced.Size:], nil
}
