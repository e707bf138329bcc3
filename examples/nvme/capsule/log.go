package capsule

// Log page identifiers (Base 2.0, 5.16).
const (
	LogError             = 0x01
	LogSMART             = 0x02
	LogFirmware          = 0x03
	LogChangedNamespaces = 0x04
	LogEffects           = 0x05
	LogDiscovery         = 0x70
)

// Lengths of log pages, in octets.
const (
	ErrorEntrySize        = 64
	SMARTSize             = 512
	FirmwareSize          = 512
	ChangedNamespacesSize = 4096
	EffectsSize           = 4096
)

// GetLogPage is the command of that name (Base 2.0, 5.16).
//
//	40 LID | 41 LSP 6:0, RAE 7 | 42 NUMDL, 16 bits | 44 NUMDU, 16 bits | 48 offset, 64 bits
type GetLogPage struct {
	NSID   uint32
	LID    uint8
	LSP    uint8 // 7 bits
	RAE    bool  // the event remains masked
	NUMD   uint32
	Offset uint64 // in octets
}

// NewGetLogPage returns the command for n octets of a log: a multiple of 4 that is not 0.
func NewGetLogPage(lid uint8, off uint64, n uint32, rae bool) GetLogPage {
	return GetLogPage{NSID: BroadcastNSID, LID: lid, RAE: rae, NUMD: n/4 - 1, Offset: off}
}

// ParseGetLogPage reads the command.
func ParseGetLogPage(c *SQE) GetLogPage {
	return GetLogPage{
		NSID:   c.NSID,
		LID:    uint8(c.CDW10),
		LSP:    uint8(c.CDW10 >> 8 & 0x7F),
		RAE:    c.CDW10>>15&1 == 1,
		NUMD:   c.CDW10>>16 | c.CDW11<<16,
		Offset: uint64(c.CDW13)<<32 | uint64(c.CDW12),
	}
}

// SQE makes the command.
func (m GetLogPage) SQE(cid uint16, sgl SGL) SQE {
	c := newSQE(OpGetLogPage, cid, m.NSID, sgl)
	c.CDW10 = uint32(m.LID) | uint32(m.LSP&0x7F)<<8 | uint32(bit64(m.RAE, 15)) | m.NUMD<<16
	c.CDW11 = m.NUMD >> 16
	c.CDW12, c.CDW13 = uint32(m.Offset), uint32(m.Offset>>32)
	return c
}

// Length returns how many octets the host requests: from 4 octets to 16 GiB. Check it before you allocate them.
func (m GetLogPage) Length() uint64 { return (uint64(m.NUMD) + 1) * 4 }

// Check checks the length and the offset: at most max octets, exactly as many as the SGL describes, and an offset
// that is a multiple of 4. The status is StatusInvalidField, StatusInvalidSGLLength or Success.
func (m GetLogPage) Check(d *Data, max uint64) Status {
	if m.Length() > max || m.Offset%4 != 0 {
		return StatusInvalidField
	}
	return d.Exactly(m.Length())
}

// PutLog fills dst with the log from an offset on, and with zeros behind its end. An offset behind the end is
// StatusInvalidField.
func PutLog(dst, log []byte, off uint64) Status {
	if off > uint64(len(log)) {
		return StatusInvalidField
	}
	clear(dst[copy(dst, log[off:]):])
	return Success
}
