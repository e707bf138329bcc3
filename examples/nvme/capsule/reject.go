package capsule

import (
	"encoding/binary"
	"fmt"
)

// A RejectStatus says why a target rejects a connection (RDMA transport 1.0, 3.3.3). 0 means no reason.
type RejectStatus uint16

// The reasons.
const (
	RejectLength      RejectStatus = 1 + iota // private data of fewer than 32 octets
	RejectRecFmt                              // RECFMT is not 0
	RejectQID                                 // above the configured number of I/O queues
	RejectHSQSize                             // 0, or above the limit
	RejectHRQSize                             // below HSQSIZE
	RejectNoResources                         // connections, memory, a limit of the host, or shutting down
	RejectIRD                                 // the host offers no RDMA Reads
	RejectORD                                 // the host requests more RDMA Reads than allowed
	RejectCNTLID                              // no such controller
)

var rejectText = [...]string{
	RejectLength:      "invalid length of the private data",
	RejectRecFmt:      "invalid RECFMT",
	RejectQID:         "invalid QID",
	RejectHSQSize:     "invalid HSQSIZE",
	RejectHRQSize:     "invalid HRQSIZE",
	RejectNoResources: "no resources",
	RejectIRD:         "invalid IRD",
	RejectORD:         "invalid ORD",
	RejectCNTLID:      "invalid CNTLID",
}

func (s RejectStatus) String() string {
	if s == 0 || int(s) >= len(rejectText) {
		return fmt.Sprintf("status %d", uint16(s))
	}
	return rejectText[s]
}

// Append appends the private data of an MPA Reply that rejects:
//
//	0 RECFMT, 16 bits, 0 | 2 STS, 16 bits
func (s RejectStatus) Append(dst []byte) []byte {
	var b [RejectSize]byte
	binary.LittleEndian.PutUint16(b[2:], uint16(s))
	return append(dst, b[:]...)
}

// A RejectError is the error of a host whose connection was rejected.
type RejectError struct {
	Status RejectStatus // 0: the Reply gave no reason
}

func (e RejectError) Error() string {
	if e.Status == 0 {
		return "nvme: the target rejected the connection without a reason, as one does that wants authentication"
	}
	return fmt.Sprintf("nvme: the target rejected the connection: %v", e.Status)
}

// ParseReject reads the private data of an MPA Reply that rejects. Data that is too short, or has another RECFMT,
// gives no reason.
func ParseReject(b []byte) RejectError {
	if len(b) < RejectSize || binary.LittleEndian.Uint16(b) != 0 {
		return RejectError{}
	}
	return RejectError{RejectStatus(binary.LittleEndian.Uint16(b[2:]))}
}
