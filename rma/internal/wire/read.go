package wire

import (
	"encoding/binary"
	"time"

	"github.com/goiwarp/iwarp/regionkey"
)

// A ReadReq requests octets of a region.
type ReadReq struct {
	Region   uint64
	Epoch    regionkey.Epoch
	SinkSTag uint32
	Offset   uint64
	SinkTO   uint64
	Length   uint32
	TTL      time.Duration // after which the server does not begin it any more
}

// Append appends the message, with the proof of the Sealer; in suite 0 there is none.
func (m *ReadReq) Append(dst []byte, h Header, c *regionkey.Control, s *regionkey.Sealer) []byte {
	all, msg := begin(dst, TypeReadReq, h)
	binary.BigEndian.PutUint64(msg[24:], m.Region)
	binary.BigEndian.PutUint32(msg[32:], uint32(m.Epoch))
	binary.BigEndian.PutUint32(msg[36:], m.SinkSTag)
	binary.BigEndian.PutUint64(msg[40:], m.Offset)
	binary.BigEndian.PutUint64(msg[48:], m.SinkTO)
	binary.BigEndian.PutUint32(msg[56:], m.Length)
	putCount(msg[60:], m.TTL, time.Microsecond)
	if c != nil {
		putInner(msg, s, h.Ctr)
	}
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message. It does not check Offset and Length against a region.
func (m *ReadReq) Parse(msg []byte) error {
	err := is(msg, TypeReadReq)
	if err != nil {
		return err
	}
	*m = ReadReq{
		Region:   binary.BigEndian.Uint64(msg[24:]),
		SinkSTag: binary.BigEndian.Uint32(msg[36:]),
		Offset:   binary.BigEndian.Uint64(msg[40:]),
		SinkTO:   binary.BigEndian.Uint64(msg[48:]),
		Length:   binary.BigEndian.Uint32(msg[56:]),
		TTL:      count(msg[60:], time.Microsecond),
	}
	m.Epoch, err = epoch(msg[32:])
	return err
}

// A ReadDone follows the octets that were written to the sink, and invalidates the sink.
type ReadDone struct {
	DataCtr uint64
	Length  uint32
	Epoch   regionkey.Epoch
}

// Append appends the message.
func (m *ReadDone) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypeReadDone, h)
	binary.BigEndian.PutUint64(msg[24:], m.DataCtr)
	binary.BigEndian.PutUint32(msg[32:], m.Length)
	binary.BigEndian.PutUint32(msg[36:], uint32(m.Epoch))
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *ReadDone) Parse(msg []byte) error {
	err := is(msg, TypeReadDone)
	if err != nil {
		return err
	}
	m.Length = binary.BigEndian.Uint32(msg[32:])
	if m.DataCtr, err = dataCtr(msg[24:]); err != nil {
		return err
	}
	m.Epoch, err = epoch(msg[36:])
	return err
}
