package sctp

import (
	"bytes"
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport"
)

// sealed returns the octets of c, with room for the DDP-SSN.
func (c control) sealed(x enhanced.Seal) ([]byte, error) {
	if x.Wrap == nil {
		return c.append(nil), nil
	}
	app := c.private
	c.private = nil
	start := c.append(nil)[ssnSize:]
	frame, err := x.Wrap(start[:len(start):len(start)], app)
	if err != nil {
		return nil, fmt.Errorf("sctp: sealing the private data: %w", err)
	}
	if want := len(start) + len(app) + x.Overhead; len(frame) != want {
		return nil, fmt.Errorf("sctp: a sealed message of %d octets, announced were %d", len(frame), want)
	}
	return append(make([]byte, ssnSize, ssnSize+len(frame)), frame...), nil
}

// open opens c, which is a message of the peer, with s. The application's part of the private data
// remains in c.
func (c *control) open(s transport.Sealer) error {
	app, err := s.Open(c.frame, len(c.frame)-len(c.private))
	if err != nil {
		app = nil
	}
	c.private = app
	return err
}

// own copies c out of the receive buffer.
func (c *control) own() {
	c.frame = bytes.Clone(c.frame)
	c.private = c.frame[len(c.frame)-len(c.private):]
}
