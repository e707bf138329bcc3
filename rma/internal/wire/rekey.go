package wire

import (
	"encoding/binary"
	"time"

	"github.com/goiwarp/iwarp/regionkey"
)

// A RekeyReq requests the next epoch of a region.
type RekeyReq struct {
	Region uint64
	Epoch  regionkey.Epoch // whose key the client holds
	Grace  time.Duration
	Next   regionkey.Epoch
	// Secret is the new secret of the region; zero: the server makes one.
	Secret regionkey.Key
}

// Append appends the message, with the proof of the Sealer. In suite 0 it contains neither the proof
// nor the secret.
func (m *RekeyReq) Append(dst []byte, h Header, c *regionkey.Control, s *regionkey.Sealer) []byte {
	all, msg := begin(dst, TypeRekeyReq, h)
	binary.BigEndian.PutUint64(msg[24:], m.Region)
	binary.BigEndian.PutUint32(msg[32:], uint32(m.Epoch))
	putCount(msg[36:], m.Grace, time.Millisecond)
	binary.BigEndian.PutUint32(msg[40:], uint32(m.Next))
	if c != nil {
		copy(msg[48:], m.Secret[:])
		putInner(msg, s, h.Ctr)
	}
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message. Next may be any epoch.
func (m *RekeyReq) Parse(msg []byte, suite uint8) error {
	err := is(msg, TypeRekeyReq)
	if err != nil {
		return err
	}
	*m = RekeyReq{
		Region: binary.BigEndian.Uint64(msg[24:]),
		Grace:  count(msg[36:], time.Millisecond),
		Next:   regionkey.Epoch(binary.BigEndian.Uint32(msg[40:])),
		Secret: regionkey.Key(msg[48:80]),
	}
	if suite == Suite0 && m.Secret != (regionkey.Key{}) {
		return malformed("a REKEY_REQ with a secret, in suite 0")
	}
	m.Epoch, err = epoch(msg[32:])
	return err
}

// A RekeyDone reports that the region is in the next epoch.
type RekeyDone struct {
	Region uint64
	Epoch  regionkey.Epoch
}

// Append appends the message.
func (m *RekeyDone) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypeRekeyDone, h)
	binary.BigEndian.PutUint64(msg[24:], m.Region)
	binary.BigEndian.PutUint32(msg[32:], uint32(m.Epoch))
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *RekeyDone) Parse(msg []byte) error {
	err := is(msg, TypeRekeyDone)
	if err != nil {
		return err
	}
	m.Region = binary.BigEndian.Uint64(msg[24:])
	m.Epoch, err = epoch(msg[32:])
	return err
}
