package transport

import "errors"

// ErrRejected is the cause of a refusal by the application.
var ErrRejected = errors.New("transport: the application refuses the connection")

// A Sealer authenticates the private data of start-up frames, of MPA or of an SCTP session, and
// opens those of the peer. It serves one connection, one call at a time, in the order of the
// frames. Nothing in a frame may be trusted before Open has returned.
type Sealer interface {
	// Overhead returns how many octets Wrap adds to the application's private data. It is called
	// before the header of the frame is built, because the lengths in the header are final.
	Overhead() int
	// Wrap returns the whole start-up frame: start, which is the frame up to the private data of
	// the ULP, followed by app, the application's private data, in authenticated form. The
	// authentication covers start.
	Wrap(start, app []byte) (frame []byte, err error)
	// Open verifies a start-up frame of the peer as it arrived. The private data of the ULP
	// begin at off. It returns the application's part, which is a part of frame.
	Open(frame []byte, off int) (app []byte, err error)
	// RefuseLen returns the overhead of Refuse for the same cause.
	RefuseLen(cause error) int
	// Refuse is like Wrap, for a frame that refuses the connection. cause is the error of Open,
	// or ErrRejected. If cause is ErrRejected, Open of the other side returns the application's
	// part of the frame; for any other refusal it returns an error.
	Refuse(start, app []byte, cause error) (frame []byte, err error)
}
