package capsule

import "encoding/binary"

// An ErrorEntry is one entry of the log page LogError (Base 2.0, 5.16.1.2). The target of this project returns only
// zeros.
//
//	 0 count, 64 bits | 8 SQID, 16 bits | 10 CID, 16 bits | 12 status, 16 bits | 14 location, 16 bits
//	16 LBA, 64 bits | 24 NSID, 32 bits
type ErrorEntry struct {
	Count    uint64 // number of the error; 0: no entry
	SQID     uint16
	CID      uint16
	Status   Status
	Location uint16 // octet 7:0 and bit 10:8 of the command
	LBA      uint64
	NSID     uint32
}

// Put writes the 64 octets of the entry to b, which must be long enough.
func (e *ErrorEntry) Put(b []byte) {
	b = b[:ErrorEntrySize]
	clear(b)
	binary.LittleEndian.PutUint64(b[0:], e.Count)
	binary.LittleEndian.PutUint16(b[8:], e.SQID)
	binary.LittleEndian.PutUint16(b[10:], e.CID)
	binary.LittleEndian.PutUint16(b[12:], e.Status.wire())
	binary.LittleEndian.PutUint16(b[14:], e.Location)
	binary.LittleEndian.PutUint64(b[16:], e.LBA)
	binary.LittleEndian.PutUint32(b[24:], e.NSID)
}

// ParseErrorEntry reads one entry, of at least 64 octets.
func ParseErrorEntry(b []byte) (ErrorEntry, error) {
	if len(b) < ErrorEntrySize {
		return ErrorEntry{}, malformed("an error log entry of %d octets", len(b))
	}
	return ErrorEntry{
		Count:    binary.LittleEndian.Uint64(b[0:]),
		SQID:     binary.LittleEndian.Uint16(b[8:]),
		CID:      binary.LittleEndian.Uint16(b[10:]),
		Status:   statusOf(binary.LittleEndian.Uint16(b[12:])),
		Location: binary.LittleEndian.Uint16(b[14:]),
		LBA:      binary.LittleEndian.Uint64(b[16:]),
		NSID:     binary.LittleEndian.Uint32(b[24:]),
	}, nil
}

// A Firmware is the log page LogFirmware (Base 2.0, 5.16.1.4).
//
//	0 AFI | 8 FRS1[8] | 16 FRS2[8] .. FRS7
type Firmware struct {
	AFI uint8     // active slot 2:0, next one 6:4
	FRS [7]string // revisions, ASCII of up to 8 octets
}

// Put writes the 512 octets of the log to b, which must be long enough.
func (f *Firmware) Put(b []byte) {
	b = b[:FirmwareSize]
	clear(b)
	b[0] = f.AFI
	for i, s := range f.FRS {
		if s != "" {
			putSpaces(b[8+8*i:16+8*i], s)
		}
	}
}

// ParseFirmware reads the log, of at least 512 octets. The revisions are not checked, and may not be ASCII.
func ParseFirmware(b []byte) (Firmware, error) {
	if len(b) < FirmwareSize {
		return Firmware{}, malformed("a firmware log of %d octets", len(b))
	}
	f := Firmware{AFI: b[0]}
	for i := range f.FRS {
		f.FRS[i] = padded(b[8+8*i : 16+8*i])
	}
	return f, nil
}

// Bits of the effects of a command.
const (
	EffectSupported = 1 << 0
	EffectLBCC      = 1 << 1 // it changes the content of LBAs
)

// Effects is the log page LogEffects (Base 2.0, 5.16.1.6): the effect bits of each opcode.
//
//	0 admin commands, 256 times 32 bits | 1024 I/O commands, 256 times 32 bits | 2048 reserved[2048]
type Effects struct {
	Admin [256]uint32
	IO    [256]uint32
}

// Put writes the 4096 octets of the log to b, which must be long enough.
func (e *Effects) Put(b []byte) {
	b = b[:EffectsSize]
	clear(b)
	for i := range 256 {
		binary.LittleEndian.PutUint32(b[4*i:], e.Admin[i])
		binary.LittleEndian.PutUint32(b[1024+4*i:], e.IO[i])
	}
}

// Parse reads the log, of at least 4096 octets.
func (e *Effects) Parse(b []byte) error {
	if len(b) < EffectsSize {
		return malformed("an effects log of %d octets", len(b))
	}
	for i := range 256 {
		e.Admin[i] = binary.LittleEndian.Uint32(b[4*i:])
		e.IO[i] = binary.LittleEndian.Uint32(b[1024+4*i:])
	}
	return nil
}
