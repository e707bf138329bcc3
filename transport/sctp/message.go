package sctp

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/internal/names"
)

// The payload protocol identifiers of the messages of DDP (RFC 5043 section 5.2).
const (
	PPIDSegment = 16 // a DDP segment
	PPIDControl = 17 // session control
)

// Adaptation is the adaptation code point by which both ends of an association declare in
// INIT and INIT ACK that it carries DDP (RFC 5043 section 5.1).
const Adaptation = 1

// A Function is the code of a session control message (RFC 5043 section 5.2.3; RFC 6581
// section 7).
type Function uint16

// The functions.
const (
	Initiate         Function = 1
	Accept           Function = 2
	Reject           Function = 3
	Terminate        Function = 4
	EnhancedInitiate Function = 5
	EnhancedAccept   Function = 6
	EnhancedReject   Function = 7
)

var functionNames = [...]string{
	Initiate: "Initiate", Accept: "Accept", Reject: "Reject", Terminate: "Terminate",
	EnhancedInitiate: "Enhanced Initiate", EnhancedAccept: "Enhanced Accept", EnhancedReject: "Enhanced Reject",
}

func (f Function) String() string { return names.Of(f, functionNames[:], "function %#04x") }

func (f Function) isEnhanced() bool { return f >= EnhancedInitiate && f <= EnhancedReject }

// refuses reports whether f, in answer to a request, ends the session.
func (f Function) refuses() bool { return f == Reject || f == Terminate || f == EnhancedReject }

// The sizes of messages, in octets.
const (
	ssnSize     = 2
	controlSize = ssnSize + 2 // DDP-SSN and function code
	// MaxPrivateData is the most that a control message may carry, enhanced data included.
	MaxPrivateData = 512
	// MinMessage is the size that every back end must be able to send without
	// fragmentation: the largest control message (RFC 5043 section 9).
	MinMessage = controlSize + MaxPrivateData
)

// A control is a session control message.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|            DDP-SSN            |         Function Code         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	~                  Private Data (0 to 512 octets)               ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type control struct {
	function Function
	private  []byte        // the ULP's
	data     enhanced.Data // of an enhanced function
	bare     bool          // an Enhanced Reject without enhanced data
	frame    []byte        // of a message of the peer: everything from the function code on
}

// append appends the message, with room for the DDP-SSN, to b.
func (c *control) append(b []byte) []byte {
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(c.function))
	if c.function.isEnhanced() {
		b = c.data.Append(b)
	}
	return append(b, c.private...)
}

// parseControl reads a message. The result shares the octets of msg.
func parseControl(msg []byte) (control, error) {
	if len(msg) < controlSize {
		return control{}, violation("a control message of %d octets", len(msg))
	}
	c := control{
		function: Function(binary.BigEndian.Uint16(msg[ssnSize:])),
		private:  msg[controlSize:],
		frame:    msg[ssnSize:],
	}
	if n := len(c.private); n > MaxPrivateData {
		return control{}, violation("%d octets of private data, at most %d are legal", n, MaxPrivateData)
	}
	switch f := c.function; {
	case f == Terminate && len(c.private) != 0:
		return control{}, violation("a Terminate with private data")
	case f < Initiate || f > EnhancedReject:
		return control{}, violation("an unknown function: %v", f)
	case f == EnhancedReject && len(c.private) < enhanced.Size:
		c.bare = true // RFC 6581 section 7 gives only the other two the enhanced data
	case f.isEnhanced():
		d, err := enhanced.Parse(c.private)
		if err != nil {
			return control{}, violation("%v: %v", f, err)
		}
		c.data, c.private = d, c.private[enhanced.Size:]
	}
	return c, nil
}

// A ViolationError says what a peer did that RFC 5043 does not allow. It ends the
// session (section 6.1 there); no Terminate code describes it.
type ViolationError struct{ What string }

func (e *ViolationError) Error() string { return "sctp: the peer sent " + e.What }

func violation(format string, args ...any) error {
	return &ViolationError{What: fmt.Sprintf(format, args...)}
}
