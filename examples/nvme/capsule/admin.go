package capsule

// Abort is the command that requests to cancel another one (Base 2.0, 5.1). DW0 of the response has bit 0 clear if
// the other command was aborted.
//
//	40 SQID, 16 bits | 42 CID, 16 bits
type Abort struct {
	SQID uint16
	CID  uint16
}

// AbortFailed is DW0 of the response to an Abort that did not cancel the command.
const AbortFailed = 1

// ParseAbort reads the command.
func ParseAbort(c *SQE) Abort { return Abort{SQID: uint16(c.CDW10), CID: uint16(c.CDW10 >> 16)} }

// SQE makes the command, which has no data.
func (m Abort) SQE(cid uint16) SQE {
	c := newSQE(OpAbort, cid, 0, NullSGL())
	c.CDW10 = uint32(m.SQID) | uint32(m.CID)<<16
	return c
}

// KeepAliveSQE makes a Keep Alive, which has neither fields nor data.
func KeepAliveSQE(cid uint16) SQE { return newSQE(OpKeepAlive, cid, 0, NullSGL()) }

// AsyncEventSQE makes an Asynchronous Event Request, which has neither fields nor data.
func AsyncEventSQE(cid uint16) SQE { return newSQE(OpAsyncEvent, cid, 0, NullSGL()) }

// Types of asynchronous events (Base 2.0, 5.2).
const (
	EventError  = 0
	EventHealth = 1
	EventNotice = 2
)

// EventPersistentError is the Info of an EventError: the controller no longer works, and must be reset.
const EventPersistentError = 3

// The events that a target of this project reports.
var (
	EventNamespaceChanged = AsyncEvent{Type: EventNotice, Info: 0x00, LID: LogChangedNamespaces}
	EventDiscoveryChanged = AsyncEvent{Type: EventNotice, Info: 0xF0, LID: LogDiscovery}
)

// Bits of FeatureAsyncEvents and of OAES, which enable and announce the events.
const (
	NoticeNamespaces uint32 = 1 << 8
	NoticeDiscovery  uint32 = 1 << 31
)

// An AsyncEvent is the result of an Asynchronous Event Request.
//
//	2:0 type | 15:8 info | 23:16 LID
type AsyncEvent struct {
	Type uint8 // 3 bits
	Info uint8
	LID  uint8 // the log page with more information
}

// ParseAsyncEvent reads DW0 of the response.
func ParseAsyncEvent(dw0 uint32) AsyncEvent {
	return AsyncEvent{Type: uint8(dw0 & 7), Info: uint8(dw0 >> 8), LID: uint8(dw0 >> 16)}
}

// DW0 returns the event as DW0 of the response.
func (e AsyncEvent) DW0() uint32 {
	return uint32(e.Type&7) | uint32(e.Info)<<8 | uint32(e.LID)<<16
}
