package wire

import (
	"encoding/binary"
	"time"

	"github.com/goiwarp/iwarp/regionkey"
)

// A WriteReq asks the server to pull octets for a region.
type WriteReq struct {
	Region uint64
	Epoch  regionkey.Epoch
	Length uint32
	Offset uint64
	// Where the server may read the octets itself, in suite 0.
	SourceSTag uint32
	SourceTO   uint64
}

// Append appends the message, with the proof of the Sealer; in suite 0 there is none.
func (m *WriteReq) Append(dst []byte, h Header, c *regionkey.Control, s *regionkey.Sealer) []byte {
	all, msg := begin(dst, TypeWriteReq, h)
	binary.BigEndian.PutUint64(msg[24:], m.Region)
	binary.BigEndian.PutUint32(msg[32:], uint32(m.Epoch))
	binary.BigEndian.PutUint32(msg[36:], m.Length)
	binary.BigEndian.PutUint64(msg[40:], m.Offset)
	binary.BigEndian.PutUint32(msg[48:], m.SourceSTag)
	binary.BigEndian.PutUint64(msg[56:], m.SourceTO)
	if c != nil {
		putInner(msg, s, h.Ctr)
	}
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message. It does not check Offset and Length against a region.
func (m *WriteReq) Parse(msg []byte, suite uint8) error {
	err := is(msg, TypeWriteReq)
	if err != nil {
		return err
	}
	*m = WriteReq{
		Region:     binary.BigEndian.Uint64(msg[24:]),
		Length:     binary.BigEndian.Uint32(msg[36:]),
		Offset:     binary.BigEndian.Uint64(msg[40:]),
		SourceSTag: binary.BigEndian.Uint32(msg[48:]),
		SourceTO:   binary.BigEndian.Uint64(msg[56:]),
	}
	if suite != Suite0 && (m.SourceSTag != 0 || m.SourceTO != 0) {
		return malformed("a WRITE_REQ that names its source, in suite %d", suite)
	}
	m.Epoch, err = epoch(msg[32:])
	return err
}

// A Pull asks the client for the octets of a write.
type Pull struct {
	Salt     [16]byte
	SinkSTag uint32 // 0: the server reads the octets itself, in suite 0
	Length   uint32
	SinkTO   uint64
	Timeout  time.Duration
}

// Append appends the message.
func (m *Pull) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypePull, h)
	copy(msg[24:], m.Salt[:])
	binary.BigEndian.PutUint32(msg[40:], m.SinkSTag)
	binary.BigEndian.PutUint32(msg[44:], m.Length)
	binary.BigEndian.PutUint64(msg[48:], m.SinkTO)
	putCount(msg[56:], m.Timeout, time.Microsecond)
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *Pull) Parse(msg []byte, suite uint8) error {
	if err := is(msg, TypePull); err != nil {
		return err
	}
	*m = Pull{
		Salt:     [16]byte(msg[24:40]),
		SinkSTag: binary.BigEndian.Uint32(msg[40:]),
		Length:   binary.BigEndian.Uint32(msg[44:]),
		SinkTO:   binary.BigEndian.Uint64(msg[48:]),
		Timeout:  count(msg[56:], time.Microsecond),
	}
	if suite != Suite0 && m.SinkSTag == 0 {
		return malformed("a PULL without a sink, in suite %d", suite)
	}
	return inRange("a pull timeout", m.Timeout, MinPullTimeout, MaxPullTimeout)
}

// A Data follows the octets of a write into the sink, and invalidates the sink.
type Data struct {
	DataCtr uint64
	Length  uint32
}

// Append appends the message.
func (m *Data) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypeData, h)
	binary.BigEndian.PutUint64(msg[24:], m.DataCtr)
	binary.BigEndian.PutUint32(msg[32:], m.Length)
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *Data) Parse(msg []byte) error {
	err := is(msg, TypeData)
	if err != nil {
		return err
	}
	m.Length = binary.BigEndian.Uint32(msg[32:])
	m.DataCtr, err = dataCtr(msg[24:])
	return err
}

// A WriteDone reports that the octets of a write are in the region.
type WriteDone struct {
	Salt   [16]byte // of the Pull
	Length uint32
	Epoch  regionkey.Epoch
}

// Append appends the message.
func (m *WriteDone) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypeWriteDone, h)
	copy(msg[24:], m.Salt[:])
	binary.BigEndian.PutUint32(msg[40:], m.Length)
	binary.BigEndian.PutUint32(msg[44:], uint32(m.Epoch))
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *WriteDone) Parse(msg []byte) error {
	err := is(msg, TypeWriteDone)
	if err != nil {
		return err
	}
	m.Salt, m.Length = [16]byte(msg[24:40]), binary.BigEndian.Uint32(msg[40:])
	m.Epoch, err = epoch(msg[44:])
	return err
}
