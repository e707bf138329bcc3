package capsule

import "fmt"

// A Status is the status of a response (Base 2.0, 3.3.3.2.1), without the phase bit, which is 0 on fabrics:
//
//	bits 7:0 SC | 10:8 SCT | 12:11 CRD | 13 More | 14 DNR
//
// The lower eleven bits, as three hexadecimal digits, are how statuses are usually cited: 0x182 is SCT 1 and
// SC 0x82. The constants include DNR ("do not retry") where no repetition can help; [Status.Code] removes
// it, for a comparison.
type Status uint16

const (
	statusCode = Status(0x7FF)
	statusMore = Status(1 << 13)
	statusDNR  = Status(1 << 14)
)

// Statuses, with DNR where a target of this project would set it.
const (
	Success                     Status = 0x000
	StatusInvalidOpcode                = 0x001 | statusDNR // unknown or disabled opcode or fctype
	StatusInvalidField                 = 0x002 | statusDNR // reserved field, PSDT, FUSE, CNS, property, size above MDTS
	StatusCIDConflict                  = 0x003 | statusDNR // the CID is outstanding on the queue
	StatusDataTransferError            = 0x004 | statusDNR // data could not be moved, or TO + length wraps
	StatusInternalError         Status = 0x006
	StatusAbortRequested        Status = 0x007 // ended by Abort or a reset
	StatusSQDeleted             Status = 0x008 // ended because the queue was deleted
	StatusInvalidNamespace             = 0x00B | statusDNR
	StatusSequenceError                = 0x00C | statusDNR // before Connect, before RDY, after the shutdown
	StatusInvalidSGLLength             = 0x00F | statusDNR // the SGL and the data differ in length
	StatusInvalidSGLType               = 0x011 | statusDNR
	StatusInvalidSGLOffset             = 0x016 | statusDNR // outside of the octets in the capsule
	StatusInvalidKATO                  = 0x01A | statusDNR // keep alive timeout
	StatusWriteProtected               = 0x020 | statusDNR
	StatusBusy                  Status = 0x022 // transient: memory, or the queue of the back end
	StatusLBAOutOfRange                = 0x080 | statusDNR
	StatusCapacityExceeded             = 0x081 | statusDNR // no space behind the namespace
	StatusNamespaceNotReady     Status = 0x082
	StatusAbortLimit                   = 0x103 | statusDNR
	StatusAsyncEventLimit              = 0x105 | statusDNR
	StatusInvalidLogPage               = 0x109 | statusDNR
	StatusFeatureNotSaveable           = 0x10D | statusDNR
	StatusConnectFormat                = 0x180 | statusDNR // Connect: RECFMT
	StatusConnectBusy           Status = 0x181             // Connect: no controller now
	StatusConnectParameter             = 0x182 | statusDNR // Connect: see ConnectParameter
	StatusConnectHost                  = 0x184 | statusDNR // Connect: the host is not allowed
	StatusInvalidProtectionInfo        = 0x181 | statusDNR // I/O commands: PRINFO
	StatusWriteFault            Status = 0x280             // write error or sync error of the back end
	StatusReadError             Status = 0x281             // read error of the back end
	StatusCompareFailure               = 0x285 | statusDNR
)

// statusText holds the names of codes. Codes of Connect and of I/O commands share numbers.
var statusText = map[Status]string{
	0x000: "success",
	0x001: "invalid opcode",
	0x002: "invalid field in command",
	0x003: "command identifier conflict",
	0x004: "data transfer error",
	0x006: "internal error",
	0x007: "aborted by request",
	0x008: "aborted, the queue was deleted",
	0x00B: "invalid namespace or format",
	0x00C: "command sequence error",
	0x00F: "invalid length of the data SGL",
	0x011: "invalid type of SGL descriptor",
	0x016: "invalid offset of the SGL",
	0x01A: "invalid keep alive timeout",
	0x020: "namespace is write protected",
	0x022: "transient transport error or busy",
	0x080: "LBA out of range",
	0x081: "capacity exceeded",
	0x082: "namespace not ready",
	0x103: "abort command limit exceeded",
	0x105: "asynchronous event request limit exceeded",
	0x109: "invalid log page",
	0x10D: "feature identifier not saveable",
	0x180: "incompatible format of Connect",
	0x181: "controller busy (Connect) or invalid protection information",
	0x182: "invalid parameters of Connect",
	0x184: "host not allowed to connect",
	0x280: "write fault",
	0x281: "unrecovered read error",
	0x285: "compare failure",
}

// SC returns the status code.
func (s Status) SC() uint8 { return uint8(s) }

// SCT returns the status code type.
func (s Status) SCT() uint8 { return uint8(s >> 8 & 7) }

// CRD returns which of the controller's command retry delays applies; 0: none.
func (s Status) CRD() uint8 { return uint8(s >> 11 & 3) }

// More reports whether the error information log says more. Linux sets the bit, this target does not.
func (s Status) More() bool { return s&statusMore != 0 }

// DNR reports whether the command would fail again if it were retried.
func (s Status) DNR() bool { return s&statusDNR != 0 }

// Code returns the status without CRD, More and DNR: SCT and SC.
func (s Status) Code() Status { return s & statusCode }

// WithDNR returns the status with DNR set.
func (s Status) WithDNR() Status { return s | statusDNR }

// WithoutDNR returns the status with DNR clear.
func (s Status) WithoutDNR() Status { return s &^ statusDNR }

// Is reports whether the two statuses have the same code; the other bits make no difference.
func (s Status) Is(other Status) bool { return s.Code() == other.Code() }

// OK reports whether the command succeeded.
func (s Status) OK() bool { return s.Code() == Success }

// wire returns the status as a CQE contains it, with a phase of 0.
func (s Status) wire() uint16 { return uint16(s) << 1 }

func statusOf(wire uint16) Status { return Status(wire >> 1) }

// String returns the code, as it is usually cited, and its name.
func (s Status) String() string {
	text, known := statusText[s.Code()]
	if !known {
		text = fmt.Sprintf("status code type %d, status code %#02x", s.SCT(), s.SC())
	}
	dnr := ""
	if s.DNR() {
		dnr = "+DNR"
	}
	return fmt.Sprintf("0x%03x%s, %s", uint16(s.Code()), dnr, text)
}

// Err returns nil for success, and a [StatusError] for any other status.
func (s Status) Err() error {
	if s.OK() {
		return nil
	}
	return StatusError{s}
}

// A StatusError is the error of a command whose response was not success.
type StatusError struct{ Status Status }

func (e StatusError) Error() string { return "nvme: " + e.Status.String() }

// Is reports whether the target is a StatusError of the same code. More and DNR make no difference.
func (e StatusError) Is(target error) bool {
	t, ok := target.(StatusError)
	return ok && e.Status.Is(t.Status)
}
