package wire

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/goiwarp/iwarp/regionkey"
)

var (
	// ErrCounter is the error of a message that is not the next one, because messages were lost, repeated or
	// reordered.
	ErrCounter = errors.New("rma: not the next message")
	// ErrTag is the error of a message that is not from the peer.
	ErrTag = errors.New("rma: the outer tag of a message is wrong")
	// ErrInner is the error of a request from a client that does not have the key for it.
	ErrInner = errors.New("rma: the inner tag of a request is wrong")
)

// noTag is the tag in suite 0.
var noTag [tagSize]byte

// secretAt returns where the encrypted part begins or, without one, the outer tag.
func (t Type) secretAt() int { return layouts[t].size - tagSize - layouts[t].secret }

// innerAt returns where the inner tag begins.
func (t Type) innerAt() int { return layouts[t].size - 2*tagSize }

// putInner writes the inner tag.
func putInner(msg []byte, s *regionkey.Sealer, ctr uint64) {
	at := Type(msg[1]).innerAt()
	s.Tag(msg[:at], ctr, msg[:at])
}

// putOuter encrypts the secret part and writes the outer tag. A nil Control stands for suite 0, in
// which the tag stays zero.
func putOuter(msg []byte, c *regionkey.Control, ctr uint64) {
	if c != nil {
		at, end := Type(msg[1]).secretAt(), len(msg)-tagSize
		c.Seal(msg[:at], msg[at:end], ctr, msg[:at])
	}
}

// Open checks a received message, except its body, and decrypts it in place. want is the number that
// it must have. A nil Control stands for suite 0. The error matches ErrMalformed, ErrCounter or
// ErrTag.
//
// If the message contains keys, the caller clears it when it has copied them.
func Open(msg []byte, want uint64, c *regionkey.Control) (Header, error) {
	h, err := parseHeader(msg)
	if err != nil {
		return h, err
	}
	if h.Ctr != want {
		return h, ErrCounter
	}
	if c == nil {
		if !bytes.Equal(msg[len(msg)-tagSize:], noTag[:]) {
			return h, ErrTag
		}
		return h, nil
	}
	at := h.Type.secretAt()
	if _, err := c.OpenInPlace(msg[at:], h.Ctr, msg[:at]); err != nil {
		return h, ErrTag
	}
	return h, nil
}

// CheckInner checks the inner tag of a request that Open has opened. The error matches ErrInner, or
// ErrMalformed if messages of that type have no inner tag. If the server has no key, for example because
// the region is unknown, the Sealer is nil, and the tag is wrong in all suites except 0.
func CheckInner(msg []byte, suite uint8, s *regionkey.Sealer) error {
	if len(msg) < headerSize || !Type(msg[1]).known() || !layouts[msg[1]].inner || len(msg) != Type(msg[1]).Size() {
		return malformed("%d octets that have no inner tag", len(msg))
	}
	at := Type(msg[1]).innerAt()
	tag := msg[at : at+tagSize]
	switch {
	case suite == Suite0 && bytes.Equal(tag, noTag[:]):
		return nil
	case suite == Suite0 || s == nil:
		return ErrInner
	}
	if err := s.CheckTag(tag, binary.BigEndian.Uint64(msg[8:]), msg[:at]); err != nil {
		return ErrInner
	}
	return nil
}
