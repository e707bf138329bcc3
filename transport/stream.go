package transport

import (
	"net"
	"time"
)

// A Stream is a connected, reliable byte stream, the thing that MPA frames. One
// goroutine at a time may read and one may write; the rest is safe for all.
type Stream interface {
	// Read reads at most len(p) octets into p; like io.Reader, but with NoWait it
	// returns ErrAgain where it would wait, and else it returns ErrWoken after
	// Wake. io.EOF: the peer ended its half. Streams that cannot tell without
	// waiting (see Arm) always return ErrAgain with NoWait.
	Read(p []byte, wait Wait) (int, error)

	// Write writes the octets of bufs in order and returns how many went out. With
	// wait it returns early only on failure; without wait it returns ErrAgain when
	// the network takes no more, perhaps after some octets went out. Streams that
	// cannot tell without parking return 0, ErrAgain whenever wait is false. The
	// caller keeps bufs and drops what went out.
	Write(bufs [][]byte, wait bool) (int, error)

	// Gather is the number of buffers that one system call takes, 0 if every buffer
	// is copied anyway (then short writes into one staged block are best).
	Gather() int

	// EMSS is the effective maximum segment size now, in octets: what the path
	// carries in one TCP segment (RFC 5044 section 3), 0 if not known.
	EMSS() int

	// SetDeadline bounds Read and Write with wait during connection set-up; the zero
	// time takes the bound away. It must not be used once Wake may be.
	SetDeadline(t time.Time) error

	// Arm, Disarm and Wake: see LLP.
	Arm(ready func()) bool
	Disarm()
	Wake()

	CloseWrite() error // ends our half (FIN)
	Close() error      // releases the connection
	Abort() error      // ends both halves at once (RST)
	// Secure tells that the octets are confidential and authenticated.
	Secure() bool
	// Path names how the connection is driven, for an operator: PathRawTCP, PathTLS, PathPipe,
	// or PathNetConn with the type of the connection.
	Path() string
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// The values of Path.
const (
	PathRawTCP  = "raw TCP"  // system calls of this package's own on the descriptor
	PathNetConn = "net.Conn" // its methods
	PathTLS     = "TLS"      // likewise, of a *tls.Conn
	PathPipe    = "pipe"     // memory of this process
)

// A Scatterer is a [Stream] that can read into several buffers at once.
type Scatterer interface {
	// Scatter is Read with NoWait into bufs, one after the other.
	Scatter(bufs [][]byte) (int, error)
}

// Prefault brings payload into memory, if s can.
func Prefault(s Stream, payload [][]byte) {
	if p, ok := s.(Prefaulter); ok {
		p.Prefault(payload)
	}
}
