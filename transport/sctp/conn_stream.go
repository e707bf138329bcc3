package sctp

import "net"

// A Stream is one pair of streams of an association whose two ends have both given the
// indication of DDP: the outbound stream and the inbound stream of the same number.
type Stream interface {
	// Send queues one message with the U bit set. Without urgent it returns
	// transport.ErrAgain if too much is unacknowledged. It does not wait, and does
	// not retain msg.
	Send(ppid uint32, msg []byte, urgent bool) error
	// Room waits until Send may accept a message again, the stream has failed, or done
	// is closed.
	Room(done <-chan struct{})
	// Acked waits until the peer has acknowledged all that was sent. It reports false
	// if the stream has failed first or done is closed.
	Acked(done <-chan struct{}) bool
	// Receive waits for the next message, in order of arrival, and copies it to p; a
	// longer one is an error. After Wake it returns transport.ErrWoken once.
	Receive(p []byte) (n int, ppid uint32, err error)
	// Wake ends a Receive that waits, or the next one that would.
	Wake()
	// MaxMessage returns the size of the largest message that is not fragmented on its
	// way and leaves room for an acknowledgement in the packet; at least MinMessage.
	MaxMessage() int
	// Release releases the pair. clean says that both sides have ended the session. Only
	// then can another session use the pair, once all is acknowledged (RFC 5043
	// section 6.6). Otherwise Acked may still be waiting, and a Terminate follow.
	Release(clean bool)
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}
