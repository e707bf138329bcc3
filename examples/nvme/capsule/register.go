package capsule

import "fmt"

// Version13 is NVMe 1.3: the value of VS and VER.
const Version13 Version = 0x00010300

// A Version is the property VS: major in bits 31:16, minor in 15:8, tertiary in 7:0.
type Version uint32

func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xFF, v&0xFF)
}

// Bits of CAP.CSS.
const (
	CSSNVM = 1 << 0 // the NVM command set
	CSSCSI = 1 << 6 // I/O command sets: the host writes 6 to CC.CSS
)

// CAP is the property CAP: controller capabilities. Fields that fabrics do not use are 0, and omitted here.
//
//	15:0 MQES | 16 CQR | 31:24 TO | 44:37 CSS | 51:48 MPSMIN | 55:52 MPSMAX
type CAP struct {
	MQES   uint16 // the most entries of a queue, 0's based
	CQR    bool   // queues are contiguous
	TO     uint8  // how long CSTS.RDY may take to follow CC.EN, in units of 500 ms
	CSS    uint8  // command sets
	MPSMIN uint8  // memory page size 2^(12+MPSMIN), the unit of MDTS; 4 bits
	MPSMAX uint8  // 4 bits
}

// ParseCAP reads the value of the property.
func ParseCAP(v uint64) CAP {
	return CAP{
		MQES:   uint16(v),
		CQR:    v>>16&1 == 1,
		TO:     uint8(v >> 24),
		CSS:    uint8(v >> 37),
		MPSMIN: uint8(v >> 48 & 15),
		MPSMAX: uint8(v >> 52 & 15),
	}
}

// Value returns the value of the property.
func (c CAP) Value() uint64 {
	return uint64(c.MQES) | bit64(c.CQR, 16) | uint64(c.TO)<<24 | uint64(c.CSS)<<37 |
		uint64(c.MPSMIN&15)<<48 | uint64(c.MPSMAX&15)<<52
}

// Values of CC.SHN and CSTS.SHST.
const (
	SHNNone       = 0
	SHNNormal     = 1
	SHNAbrupt     = 2
	SHSTNone      = 0
	SHSTOccurring = 1
	SHSTComplete  = 2
)

// CC is the property CC: controller configuration.
//
//	0 EN | 6:4 CSS | 10:7 MPS | 13:11 AMS | 15:14 SHN | 19:16 IOSQES | 23:20 IOCQES
type CC struct {
	EN     bool
	CSS    uint8 // command set: 0 NVM, 6 all sets of CAP.CSS bit 6
	MPS    uint8 // memory page size 2^(12+MPS)
	AMS    uint8 // arbitration
	SHN    uint8 // shutdown notification
	IOSQES uint8 // SQE of 2^IOSQES octets: 6
	IOCQES uint8 // CQE of 2^IOCQES octets: 4
}

// ParseCC reads the value of the property.
func ParseCC(v uint32) CC {
	return CC{
		EN:     v&1 == 1,
		CSS:    uint8(v >> 4 & 7),
		MPS:    uint8(v >> 7 & 15),
		AMS:    uint8(v >> 11 & 7),
		SHN:    uint8(v >> 14 & 3),
		IOSQES: uint8(v >> 16 & 15),
		IOCQES: uint8(v >> 20 & 15),
	}
}

// Value returns the value of the property.
func (c CC) Value() uint32 {
	return uint32(bit64(c.EN, 0)) | uint32(c.CSS&7)<<4 | uint32(c.MPS&15)<<7 | uint32(c.AMS&7)<<11 |
		uint32(c.SHN&3)<<14 | uint32(c.IOSQES&15)<<16 | uint32(c.IOCQES&15)<<20
}

// Supported reports whether a controller can be enabled with these fields: the NVM command set, pages of 4 KiB, round
// robin, and entries of 64 and 16 octets.
func (c CC) Supported() bool {
	return c.CSS == 0 && c.MPS == 0 && c.AMS == 0 && c.IOSQES == 6 && c.IOCQES == 4
}

// CSTS is the property CSTS: controller status.
//
//	0 RDY | 1 CFS | 3:2 SHST
type CSTS struct {
	RDY  bool
	CFS  bool  // the controller has failed
	SHST uint8 // shutdown status
}

// ParseCSTS reads the value of the property.
func ParseCSTS(v uint32) CSTS {
	return CSTS{RDY: v&1 == 1, CFS: v>>1&1 == 1, SHST: uint8(v >> 2 & 3)}
}

// Value returns the value of the property.
func (s CSTS) Value() uint32 {
	return uint32(bit64(s.RDY, 0)|bit64(s.CFS, 1)) | uint32(s.SHST&3)<<2
}

// bit64 returns 1<<n if set is true, and 0 otherwise.
func bit64(set bool, n uint) uint64 {
	if set {
		return 1 << n
	}
	return 0
}
