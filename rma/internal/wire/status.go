package wire

import (
	"encoding/binary"
	"time"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

// A Status ends an operation that failed. Unknown Codes, and Codes of local outcomes, are not refused.
type Status struct {
	Code       op.Outcome
	Reason     op.Reason
	RetryAfter time.Duration
	Region     uint64
	// Epoch is the current epoch; 0 unless the client holds a key of an older epoch.
	Epoch regionkey.Epoch
}

// Append appends the message.
func (m *Status) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypeStatus, h)
	binary.BigEndian.PutUint16(msg[24:], uint16(m.Code))
	binary.BigEndian.PutUint16(msg[26:], uint16(m.Reason))
	putCount(msg[28:], m.RetryAfter, time.Microsecond)
	binary.BigEndian.PutUint64(msg[32:], m.Region)
	binary.BigEndian.PutUint32(msg[40:], uint32(m.Epoch))
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *Status) Parse(msg []byte) error {
	if err := is(msg, TypeStatus); err != nil {
		return err
	}
	*m = Status{
		Code:       op.Outcome(binary.BigEndian.Uint16(msg[24:])),
		Reason:     op.Reason(binary.BigEndian.Uint16(msg[26:])),
		RetryAfter: count(msg[28:], time.Microsecond),
		Region:     binary.BigEndian.Uint64(msg[32:]),
		Epoch:      regionkey.Epoch(binary.BigEndian.Uint32(msg[40:])),
	}
	if m.Code == 0 {
		return malformed("a STATUS without a failure")
	}
	return nil
}
