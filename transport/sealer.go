package transport

import "errors"

// ErrRejected is the cause of a refusal that is the application's.
var ErrRejected = errors.New("transport: the application refuses the connection")

// A Sealer puts the private data of start-up frames, MPA's or those of a session of SCTP, into
// an authenticated form, and opens those of the peer. It serves one connection, one call at a
// time, in the order of the frames. Nothing of a frame may be believed before Open has
// returned.
type Sealer interface {
	// Overhead is how many octets Wrap adds to private data of the application. It is asked
	// before the header of the frame is built, whose lengths are then final.
	Overhead() int
	// Wrap appends to start, the start-up frame up to the private data of the ULP, those private
	// data: app, the application's, in their authenticated form, which covers start. It returns
	// the whole frame.
	Wrap(start, app []byte) (frame []byte, err error)
	// Open verifies a start-up frame of the peer as it came, in which the private data of the
	// ULP begin at off, and returns the application's part, which is a part of frame.
	Open(frame []byte, off int) (app []byte, err error)
	// RefuseLen is the Overhead of Refuse for the same cause.
	RefuseLen(cause error) int
	// Refuse is Wrap for a frame that refuses the connection. cause is what Open has returned,
	// or ErrRejected. Open of the other side returns the application's part of a frame that
	// refuses because of ErrRejected, and an error for any other refusal.
	Refuse(start, app []byte, cause error) (frame []byte, err error)
}
