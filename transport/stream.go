package transport

import (
	"net"
	"time"
)

// A Stream is a connected, reliable byte stream, which MPA frames. One goroutine at a time
// may read and one may write; all other methods are safe for concurrent use.
type Stream interface {
	// Read reads at most len(p) octets into p, like io.Reader. With NoWait it returns
	// ErrAgain if it would have to wait; otherwise it returns ErrWoken if Wake ends the
	// wait. It returns io.EOF if the peer has ended its half. A Stream that cannot check
	// for input without waiting (see Arm) always returns ErrAgain with NoWait.
	Read(p []byte, wait Wait) (int, error)

	// Write writes the octets of bufs in order and returns how many it has written. With
	// wait it returns early only on failure. Without wait it returns ErrAgain, possibly
	// after it has written some octets, when the network accepts no more. A Stream that
	// cannot write without waiting always returns 0, ErrAgain without wait. Write does
	// not change bufs; the caller must drop the octets that were written.
	Write(bufs [][]byte, wait bool) (int, error)

	// Gather returns how many buffers one system call accepts, 0 if every buffer is copied
	// anyway (then it is best to copy short writes into one block first).
	Gather() int

	// EMSS returns the current effective maximum segment size, in octets: the payload of
	// one TCP segment on the path (RFC 5044 section 3), 0 if unknown.
	EMSS() int

	// SetDeadline bounds Read and Write with wait during connection set-up; the zero
	// time removes the bound. It must not be used when Wake may be called.
	SetDeadline(t time.Time) error

	// Arm, Disarm and Wake: see LLP.
	Arm(ready func()) bool
	Disarm()
	Wake()

	CloseWrite() error // ends this side's half (FIN)
	Close() error      // releases the connection
	Abort() error      // ends both halves at once (RST)
	// Secure reports whether the data is confidential and authenticated.
	Secure() bool
	// Path names how the connection is driven, for an operator: PathRawTCP, PathTLS, PathPipe,
	// or PathNetConn with the type of the connection.
	Path() string
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// The values of Path.
const (
	PathRawTCP  = "raw TCP"  // system calls of this package on the descriptor
	PathNetConn = "net.Conn" // the methods of the net.Conn
	PathTLS     = "TLS"      // the methods of a *tls.Conn
	PathPipe    = "pipe"     // an in-memory pipe
)

// A Scatterer is a [Stream] that can read into several buffers at once.
type Scatterer interface {
	// Scatter is Read with NoWait; it fills bufs in order.
	Scatter(bufs [][]byte) (int, error)
}

// Prefault calls Prefault of s, if s is a [Prefaulter].
func Prefault(s Stream, payload [][]byte) {
	if p, ok := s.(Prefaulter); ok {
		p.Prefault(payload)
	}
}
