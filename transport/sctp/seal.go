package sctp

import (
	"bytes"
	"fmt"

	"github.com/goiwarp/iwarp/transport"
)

// A seal puts the private data of the ULP into a control message. The zero value puts them
// there as they are.
type seal struct {
	overhead int
	wrap     func(start, app []byte) ([]byte, error)
}

// sealing is the seal of a message that asks for a session, or accepts one. s may be nil.
func sealing(s transport.Sealer) seal {
	if s == nil {
		return seal{}
	}
	return seal{overhead: s.Overhead(), wrap: s.Wrap}
}

// refusing is the seal of a message that refuses a session because of cause. s may be nil.
func refusing(s transport.Sealer, cause error) seal {
	if s == nil {
		return seal{}
	}
	return seal{overhead: s.RefuseLen(cause), wrap: func(start, app []byte) ([]byte, error) {
		return s.Refuse(start, app, cause)
	}}
}

// message returns the octets of c, with room for the DDP-SSN.
func (x seal) message(c control) ([]byte, error) {
	if x.wrap == nil {
		return c.append(nil), nil
	}
	app := c.private
	c.private = nil
	start := c.append(nil)[ssnSize:]
	frame, err := x.wrap(start[:len(start):len(start)], app)
	if err != nil {
		return nil, fmt.Errorf("sctp: sealing the private data: %w", err)
	}
	if want := len(start) + len(app) + x.overhead; len(frame) != want {
		return nil, fmt.Errorf("sctp: a sealed message of %d octets, announced were %d", len(frame), want)
	}
	return append(make([]byte, ssnSize, ssnSize+len(frame)), frame...), nil
}

// open has s open c, which is a message of the peer's, and leaves in it the application's part of
// the private data.
func (c *control) open(s transport.Sealer) error {
	app, err := s.Open(c.frame, len(c.frame)-len(c.private))
	if err != nil {
		app = nil
	}
	c.private = app
	return err
}

// own copies c from the buffer that it came in.
func (c *control) own() {
	c.frame = bytes.Clone(c.frame)
	c.private = c.frame[len(c.frame)-len(c.private):]
}
