package wire

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/regionkey"
)

// Ops are kinds of operations.
type Ops uint8

// The kinds.
const (
	OpRead Ops = 1 << iota
	OpWrite
	OpManage

	allOps = OpRead | OpWrite | OpManage
)

// OpsOf returns the bit of one kind.
func OpsOf(t regionkey.OpType) Ops { return 1 << (t - regionkey.Read) }

// parseOps reads kinds of operations, at least one.
func parseOps(b byte) (Ops, error) {
	o := Ops(b)
	if o == 0 || o&^allOps != 0 {
		return 0, malformed("kinds of operations %#02x", b)
	}
	return o, nil
}

// An OpenReq requests the keys of a region.
type OpenReq struct {
	Region   uint64
	Instance [16]byte
	Ops      Ops
}

// Append appends the message.
func (m *OpenReq) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypeOpenReq, h)
	binary.BigEndian.PutUint64(msg[24:], m.Region)
	copy(msg[32:], m.Instance[:])
	msg[48] = byte(m.Ops)
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *OpenReq) Parse(msg []byte) error {
	err := is(msg, TypeOpenReq)
	if err != nil {
		return err
	}
	m.Region, m.Instance = binary.BigEndian.Uint64(msg[24:]), [16]byte(msg[32:48])
	m.Ops, err = parseOps(msg[48])
	return err
}

// An OpenRep grants operations on a region.
type OpenRep struct {
	Region uint64
	Epoch  regionkey.Epoch
	Size   uint64
	Ops    Ops
	// Keys are the keys for reads, writes and Rekey; zero: not granted.
	Keys [3]regionkey.Key
}

// Key returns the key for operations of one kind.
func (m *OpenRep) Key(t regionkey.OpType) *regionkey.Key { return &m.Keys[t-regionkey.Read] }

// Append appends the message. In suite 0 it contains no keys.
func (m *OpenRep) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypeOpenRep, h)
	binary.BigEndian.PutUint64(msg[24:], m.Region)
	binary.BigEndian.PutUint32(msg[32:], uint32(m.Epoch))
	binary.BigEndian.PutUint64(msg[40:], m.Size)
	msg[48] = byte(m.Ops)
	if c != nil {
		for i := range m.Keys {
			copy(msg[56+32*i:], m.Keys[i][:])
		}
	}
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *OpenRep) Parse(msg []byte) error {
	err := is(msg, TypeOpenRep)
	if err != nil {
		return err
	}
	m.Region, m.Size = binary.BigEndian.Uint64(msg[24:]), binary.BigEndian.Uint64(msg[40:])
	if m.Epoch, err = epoch(msg[32:]); err != nil {
		return err
	}
	if m.Ops, err = parseOps(msg[48]); err != nil {
		return err
	}
	for i := range m.Keys {
		copy(m.Keys[i][:], msg[56+32*i:])
		if m.Ops&(1<<i) == 0 && m.Keys[i] != (regionkey.Key{}) {
			return malformed("a key for operations that are not granted")
		}
	}
	return nil
}
