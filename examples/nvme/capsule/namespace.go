package capsule

import (
	"encoding/binary"
	"errors"
)

// Values of fields of Identify Namespace.
const (
	NSFEATThin           = 1 << 0 // NUSE counts allocated LBAs
	NSFEATOptimal        = 1 << 4 // NPWG to NOWS are valid
	NMICShared           = 1 << 0
	DLFEATZeroes         = 1 // trimmed LBAs read as zero
	DLFEATWriteZeroes    = 1 << 3
	NSATTRWriteProtected = 1 << 0
	formats              = 64
	formatsAt            = 128
	minLBADS, maxLBADS   = 9, 16
)

// ErrInactive is the error for a namespace that does not exist: its Identify Namespace data is zero.
var ErrInactive = errors.New("nvme: the namespace is not active")

// An LBAFormat is a format of the LBAs of a namespace.
//
//	0 MS, 16 bits | 2 LBADS | 3 RP 1:0
type LBAFormat struct {
	MS    uint16 // octets of metadata
	LBADS uint8  // an LBA has 2^LBADS octets
	RP    uint8  // relative performance
}

// IdentifyNamespace is the data of Identify, CNS 0 (NVM command set 1.0, 4.1.5), as far as it is used. Offsets are at
// the fields.
type IdentifyNamespace struct {
	NSZE     uint64             // 0: size in LBAs
	NCAP     uint64             // 8
	NUSE     uint64             // 16
	NSFEAT   uint8              // 24
	NLBAF    uint8              // 25: formats, 0's based
	FLBAS    uint8              // 26: the one in use: 3:0, and above them 6:5
	NMIC     uint8              // 30
	DLFEAT   uint8              // 33
	NPWG     uint16             // 64: this and the next four are in LBAs, 0's based
	NPWA     uint16             // 66
	NPDG     uint16             // 68
	NPDA     uint16             // 70
	NOWS     uint16             // 72
	ANAGRPID uint32             // 92
	NSATTR   uint8              // 99
	NGUID    [16]byte           // 104
	EUI64    [8]byte            // 120
	LBAF     [formats]LBAFormat // 128
}

// Put writes the data to a page of 4096 octets, with zeros elsewhere.
func (n *IdentifyNamespace) Put(page []byte) {
	b := page[:PageSize]
	clear(b)
	binary.LittleEndian.PutUint64(b[0:], n.NSZE)
	binary.LittleEndian.PutUint64(b[8:], n.NCAP)
	binary.LittleEndian.PutUint64(b[16:], n.NUSE)
	b[24], b[25], b[26], b[30], b[33], b[99] = n.NSFEAT, n.NLBAF, n.FLBAS, n.NMIC, n.DLFEAT, n.NSATTR
	for i, v := range [...]uint16{n.NPWG, n.NPWA, n.NPDG, n.NPDA, n.NOWS} {
		binary.LittleEndian.PutUint16(b[64+2*i:], v)
	}
	binary.LittleEndian.PutUint32(b[92:], n.ANAGRPID)
	copy(b[104:], n.NGUID[:])
	copy(b[120:], n.EUI64[:])
	for i, f := range n.LBAF {
		at := b[formatsAt+4*i:]
		binary.LittleEndian.PutUint16(at, f.MS)
		at[2], at[3] = f.LBADS, f.RP
	}
}

// ParseIdentifyNamespace reads the data, of at least 4096 octets. It may be of a size and a format that no host can
// use: see Geometry.
func ParseIdentifyNamespace(b []byte) (*IdentifyNamespace, error) {
	if len(b) < PageSize {
		return nil, malformed("an Identify Namespace of %d octets", len(b))
	}
	n := &IdentifyNamespace{
		NSZE:   binary.LittleEndian.Uint64(b[0:]),
		NCAP:   binary.LittleEndian.Uint64(b[8:]),
		NUSE:   binary.LittleEndian.Uint64(b[16:]),
		NSFEAT: b[24], NLBAF: b[25], FLBAS: b[26], NMIC: b[30], DLFEAT: b[33], NSATTR: b[99],
		ANAGRPID: binary.LittleEndian.Uint32(b[92:]),
		NGUID:    [16]byte(b[104:]),
		EUI64:    [8]byte(b[120:]),
	}
	for i, v := range [...]*uint16{&n.NPWG, &n.NPWA, &n.NPDG, &n.NPDA, &n.NOWS} {
		*v = binary.LittleEndian.Uint16(b[64+2*i:])
	}
	for i := range n.LBAF {
		at := b[formatsAt+4*i:]
		n.LBAF[i] = LBAFormat{MS: binary.LittleEndian.Uint16(at), LBADS: at[2], RP: at[3]}
	}
	return n, nil
}

// A Geometry is the size of a namespace.
type Geometry struct {
	LBADS  uint8 // an LBA has 2^LBADS octets: 9 to 16
	Blocks uint64
}

// BlockSize returns the length of an LBA, in octets.
func (g Geometry) BlockSize() int { return 1 << g.LBADS }

// Size returns the size in octets.
func (g Geometry) Size() int64 { return int64(g.Blocks << g.LBADS) }

// Geometry returns the size of the namespace after checking it: the format must exist, without metadata and with LBAs of 512
// octets to 64 KiB, and the size in octets must fit an int64. For data that is all zero it returns ErrInactive.
func (n *IdentifyNamespace) Geometry() (Geometry, error) {
	if *n == (IdentifyNamespace{}) {
		return Geometry{}, ErrInactive
	}
	format := n.FLBAS&15 | n.FLBAS>>5&3<<4
	if format > n.NLBAF {
		return Geometry{}, malformed("format %d of the LBAs, where there are %d", format, int(n.NLBAF)+1)
	}
	f := n.LBAF[format]
	switch {
	case f.LBADS < minLBADS || f.LBADS > maxLBADS:
		return Geometry{}, malformed("LBADS %d", f.LBADS)
	case f.MS != 0:
		return Geometry{}, malformed("%d octets of metadata at each LBA", f.MS)
	case n.NSZE == 0 || n.NSZE > maxOctets>>f.LBADS:
		return Geometry{}, malformed("NSZE %d, of LBAs of %d octets", n.NSZE, 1<<f.LBADS)
	}
	return Geometry{LBADS: f.LBADS, Blocks: n.NSZE}, nil
}
