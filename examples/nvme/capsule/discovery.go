package capsule

import "encoding/binary"

const (
	// DiscoveryHeaderSize and DiscoveryEntrySize are lengths in the log page LogDiscovery, in octets.
	DiscoveryHeaderSize = 1024
	DiscoveryEntrySize  = 1024
	// MaxDiscoveryEntries is the maximum number of entries that a host accepts.
	MaxDiscoveryEntries = 4096
)

// Values of fields of discovery entries.
const (
	TransportRDMA      = 1
	AddressIPv4        = 1
	AddressIPv6        = 2
	SubtypeReferral    = 1
	SubtypeNVM         = 2
	SubtypeDiscovery   = 3 // this discovery subsystem
	QPTypeConnected    = 1
	ProviderIWARP      = 5 // Linux says 1, none
	CMSRDMACM          = 1
	DynamicControllers = 0xFFFF // CNTLID
)

// A DiscoveryHeader begins the log page LogDiscovery (Fabrics 1.1, 5.3).
//
//	0 GENCTR, 64 bits | 8 NUMREC, 64 bits | 16 RECFMT, 16 bits, 0 | 18 reserved | 1024 entries
type DiscoveryHeader struct {
	GENCTR uint64 // differs for each content
	NUMREC uint64
}

// Put writes the 1024 octets of the header to b, which must be long enough.
func (h DiscoveryHeader) Put(b []byte) {
	b = b[:DiscoveryHeaderSize]
	clear(b)
	binary.LittleEndian.PutUint64(b[0:], h.GENCTR)
	binary.LittleEndian.PutUint64(b[8:], h.NUMREC)
}

// ParseDiscoveryHeader reads the header, of at least 1024 octets. A RECFMT other than 0, and more entries than
// MaxDiscoveryEntries, are errors.
func ParseDiscoveryHeader(b []byte) (DiscoveryHeader, error) {
	if len(b) < DiscoveryHeaderSize {
		return DiscoveryHeader{}, malformed("a discovery log of %d octets", len(b))
	}
	if f := binary.LittleEndian.Uint16(b[16:]); f != 0 {
		return DiscoveryHeader{}, malformed("RECFMT %d of the discovery log", f)
	}
	h := DiscoveryHeader{GENCTR: binary.LittleEndian.Uint64(b[0:]), NUMREC: binary.LittleEndian.Uint64(b[8:])}
	if h.NUMREC > MaxDiscoveryEntries {
		return DiscoveryHeader{}, malformed("a discovery log of %d entries", h.NUMREC)
	}
	return h, nil
}

// Length returns the length of the log with all its entries, in octets.
func (h DiscoveryHeader) Length() uint64 { return DiscoveryHeaderSize + h.NUMREC*DiscoveryEntrySize }

// A DiscoveryEntry says where a subsystem can be reached.
//
//	  0 TRTYPE | 1 ADRFAM | 2 SUBTYPE | 3 TREQ | 4 PORTID, 16 bits | 6 CNTLID, 16 bits | 8 ASQSZ, 16 bits
//	 10 EFLAGS, 16 bits | 32 TRSVCID[32] | 256 SUBNQN[256] | 512 TRADDR[256]
//	768 TSAS: QPTYPE | 769 PRTYPE | 770 CMS
type DiscoveryEntry struct {
	TRTYPE  uint8
	ADRFAM  uint8
	SUBTYPE uint8
	TREQ    uint8
	PORTID  uint16
	CNTLID  uint16
	ASQSZ   uint16 // entries of the admin queue
	EFLAGS  uint16
	TRSVCID string // the port
	SubNQN  string
	TRADDR  string
	QPTYPE  uint8
	PRTYPE  uint8
	CMS     uint8
}

// Put writes the 1024 octets of the entry to b, which must be long enough. It truncates a text that is too long for its
// field.
func (e *DiscoveryEntry) Put(b []byte) {
	b = b[:DiscoveryEntrySize]
	clear(b)
	b[0], b[1], b[2], b[3] = e.TRTYPE, e.ADRFAM, e.SUBTYPE, e.TREQ
	binary.LittleEndian.PutUint16(b[4:], e.PORTID)
	binary.LittleEndian.PutUint16(b[6:], e.CNTLID)
	binary.LittleEndian.PutUint16(b[8:], e.ASQSZ)
	binary.LittleEndian.PutUint16(b[10:], e.EFLAGS)
	putNUL(b[32:64], e.TRSVCID)
	putNUL(b[256:512], e.SubNQN)
	putNUL(b[512:768], e.TRADDR)
	b[768], b[769], b[770] = e.QPTYPE, e.PRTYPE, e.CMS
}

// ParseDiscoveryEntry reads one entry, of at least 1024 octets. A name that CheckNQN refuses is an error. TRSVCID and
// TRADDR are as received, without trailing NULs and spaces.
func ParseDiscoveryEntry(b []byte) (DiscoveryEntry, error) {
	if len(b) < DiscoveryEntrySize {
		return DiscoveryEntry{}, malformed("a discovery entry of %d octets", len(b))
	}
	e := DiscoveryEntry{
		TRTYPE: b[0], ADRFAM: b[1], SUBTYPE: b[2], TREQ: b[3],
		PORTID:  binary.LittleEndian.Uint16(b[4:]),
		CNTLID:  binary.LittleEndian.Uint16(b[6:]),
		ASQSZ:   binary.LittleEndian.Uint16(b[8:]),
		EFLAGS:  binary.LittleEndian.Uint16(b[10:]),
		TRSVCID: padded([]byte(untilNUL(b[32:64]))),
		SubNQN:  untilNUL(b[256:512]),
		TRADDR:  padded([]byte(untilNUL(b[512:768]))),
		QPTYPE:  b[768], PRTYPE: b[769], CMS: b[770],
	}
	return e, CheckNQN(e.SubNQN)
}

// ParseDiscoveryLog reads a whole log. If there are fewer entries than the header says, it returns an error; it ignores
// octets after the entries.
func ParseDiscoveryLog(b []byte) (DiscoveryHeader, []DiscoveryEntry, error) {
	h, err := ParseDiscoveryHeader(b)
	if err != nil {
		return h, nil, err
	}
	if uint64(len(b)) < h.Length() {
		return h, nil, malformed("a discovery log of %d entries in %d octets", h.NUMREC, len(b))
	}
	entries := make([]DiscoveryEntry, h.NUMREC)
	for i := range entries {
		entries[i], err = ParseDiscoveryEntry(b[DiscoveryHeaderSize+DiscoveryEntrySize*i:])
		if err != nil {
			return h, nil, err
		}
	}
	return h, entries, nil
}
