package capsule

import "encoding/binary"

// Values of fields of Identify Controller.
const (
	CMICControllers            = 1 << 1 // the subsystem may have several controllers
	CTRATTHostID128            = 1 << 0 // host identifiers of 16 octets
	CTRATTTrafficBased         = 1 << 6 // each command counts as Keep Alive
	ControllerIO               = 1      // CNTRLTYPE
	ControllerDiscovery        = 2
	LPAEffects                 = 1 << 1
	LPAExtendedData            = 1 << 2 // offsets, and long lengths
	ONCSCompare                = 1 << 0
	ONCSDSM                    = 1 << 2
	ONCSWriteZeroes            = 1 << 3
	VWCPresent                 = 1 << 0
	VWCFlushAll                = 3 << 1 // Flush of BroadcastNSID is supported
	SGLSSupported              = 1 << 0
	SGLSKeyed                  = 1 << 2
	SGLSInCapsule              = 1 << 20
	KASUnit                    = 100 // milliseconds
	EntrySizes64               = 0x66
	EntrySizes16               = 0x44
	minPageShift               = 12 // a page of MPSMIN 0 has 2^12 octets
	capsuleUnit                = 16 // of IOCCSZ and IORCSZ
	maxMDTS                    = 31
	ctrlSubNQN                 = 768
	ctrlMinIOCCSZ       uint32 = SQESize / capsuleUnit
	ctrlMinIORCSZ       uint32 = CQESize / capsuleUnit
)

// IdentifyController is the data of Identify, CNS 1 (Base 2.0, 5.17.2.1), as far as they are used. The comments of
// the fields contain their offsets.
type IdentifyController struct {
	VID       uint16   // 0
	SSVID     uint16   // 2
	SN        string   // 4: 20 octets of ASCII, the same after a restart
	MN        string   // 24: 40 octets of ASCII
	FR        string   // 64: 8 octets of ASCII
	RAB       uint8    // 72
	CMIC      uint8    // 76
	MDTS      uint8    // 77: 2^MDTS pages of CAP.MPSMIN; 0: no limit
	CNTLID    uint16   // 78
	VER       Version  // 80
	OAES      uint32   // 92
	CTRATT    uint32   // 96
	CNTRLTYPE uint8    // 111
	ACL       uint8    // 258: 0's based
	AERL      uint8    // 259: 0's based
	FRMW      uint8    // 260
	LPA       uint8    // 261
	ELPE      uint8    // 262: 0's based
	KAS       uint16   // 320: in KASUnit
	ANATT     uint8    // 342
	ANACAP    uint8    // 343
	ANAGRPMAX uint32   // 344
	NANAGRPID uint32   // 348
	SQES      uint8    // 512
	CQES      uint8    // 513
	MAXCMD    uint16   // 514
	NN        uint32   // 516: the highest NSID
	ONCS      uint16   // 520
	VWC       uint8    // 525
	AWUN      uint16   // 526: 0's based
	AWUPF     uint16   // 528: 0's based
	NWPC      uint8    // 531: write protection that hosts can set
	SGLS      uint32   // 536
	MNAN      uint32   // 540
	SubNQN    string   // 768
	IOCCSZ    uint32   // 1792: in 16 octets
	IORCSZ    uint32   // 1796: in 16 octets
	ICDOFF    uint16   // 1800: in 16 octets
	FCATT     uint8    // 1802
	MSDBD     uint8    // 1803
	PSD0      [32]byte // 2048
}

// eachOctet calls f for each field of one octet, with its offset.
func (c *IdentifyController) eachOctet(f func(off int, v *uint8)) {
	f(72, &c.RAB)
	f(76, &c.CMIC)
	f(77, &c.MDTS)
	f(111, &c.CNTRLTYPE)
	f(258, &c.ACL)
	f(259, &c.AERL)
	f(260, &c.FRMW)
	f(261, &c.LPA)
	f(262, &c.ELPE)
	f(342, &c.ANATT)
	f(343, &c.ANACAP)
	f(512, &c.SQES)
	f(513, &c.CQES)
	f(525, &c.VWC)
	f(531, &c.NWPC)
	f(1802, &c.FCATT)
	f(1803, &c.MSDBD)
}

// each16 calls f for each field of 16 bits.
func (c *IdentifyController) each16(f func(off int, v *uint16)) {
	f(0, &c.VID)
	f(2, &c.SSVID)
	f(78, &c.CNTLID)
	f(320, &c.KAS)
	f(514, &c.MAXCMD)
	f(520, &c.ONCS)
	f(526, &c.AWUN)
	f(528, &c.AWUPF)
	f(1800, &c.ICDOFF)
}

// each32 calls f for each field of 32 bits.
func (c *IdentifyController) each32(f func(off int, v *uint32)) {
	f(80, (*uint32)(&c.VER))
	f(92, &c.OAES)
	f(96, &c.CTRATT)
	f(344, &c.ANAGRPMAX)
	f(348, &c.NANAGRPID)
	f(516, &c.NN)
	f(536, &c.SGLS)
	f(540, &c.MNAN)
	f(1792, &c.IOCCSZ)
	f(1796, &c.IORCSZ)
}

// Put writes the data to a page of 4096 octets, with zeros elsewhere. It truncates a text that is too long: see
// CheckText.
func (c *IdentifyController) Put(page []byte) {
	b := page[:PageSize]
	clear(b)
	putSpaces(b[4:24], c.SN)
	putSpaces(b[24:64], c.MN)
	putSpaces(b[64:72], c.FR)
	putNUL(b[ctrlSubNQN:ctrlSubNQN+nqnSize], c.SubNQN)
	copy(b[2048:], c.PSD0[:])
	c.eachOctet(func(off int, v *uint8) { b[off] = *v })
	c.each16(func(off int, v *uint16) { binary.LittleEndian.PutUint16(b[off:], *v) })
	c.each32(func(off int, v *uint32) { binary.LittleEndian.PutUint32(b[off:], *v) })
}

// ParseIdentifyController reads the data, of at least 4096 octets. The texts are as received, and may not be ASCII.
func ParseIdentifyController(b []byte) (*IdentifyController, error) {
	if len(b) < PageSize {
		return nil, malformed("an Identify Controller of %d octets", len(b))
	}
	c := &IdentifyController{
		SN:     padded(b[4:24]),
		MN:     padded(b[24:64]),
		FR:     padded(b[64:72]),
		SubNQN: untilNUL(b[ctrlSubNQN : ctrlSubNQN+nqnSize]),
		PSD0:   [32]byte(b[2048:]),
	}
	c.eachOctet(func(off int, v *uint8) { *v = b[off] })
	c.each16(func(off int, v *uint16) { *v = binary.LittleEndian.Uint16(b[off:]) })
	c.each32(func(off int, v *uint32) { *v = binary.LittleEndian.Uint32(b[off:]) })
	return c, nil
}

// CheckText checks the texts of a target before it uses them: whether they fit, and are ASCII.
func (c *IdentifyController) CheckText() error {
	if err := checkText("serial number", c.SN, 20); err != nil {
		return err
	}
	if err := checkText("model number", c.MN, 40); err != nil {
		return err
	}
	if err := checkText("firmware revision", c.FR, 8); err != nil {
		return err
	}
	return CheckNQN(c.SubNQN)
}

// CheckHost checks what a host of this package needs from the controller to which it connected as cntlid; the limits
// of commands matter only on I/O controllers.
func (c *IdentifyController) CheckHost(cntlid uint16) error {
	switch {
	case c.CNTLID != cntlid:
		return malformed("CNTLID %d, where Connect gave %d", c.CNTLID, cntlid)
	case c.SGLS&3 == 0:
		return malformed("the controller supports no SGLs (SGLS %#x)", c.SGLS)
	case c.SGLS&SGLSKeyed == 0:
		return malformed("the controller supports no keyed SGLs (SGLS %#x)", c.SGLS)
	case c.MDTS > maxMDTS:
		return malformed("MDTS %d", c.MDTS)
	case c.CNTRLTYPE == ControllerDiscovery:
		return nil
	case c.KAS == 0:
		return malformed("the controller supports no Keep Alive")
	case c.IOCCSZ < ctrlMinIOCCSZ:
		return malformed("IOCCSZ %d is below %d", c.IOCCSZ, ctrlMinIOCCSZ)
	case c.IORCSZ < ctrlMinIORCSZ:
		return malformed("IORCSZ %d is below %d", c.IORCSZ, ctrlMinIORCSZ)
	case c.ICDOFF != 0:
		return malformed("ICDOFF %d, where 0 is supported", c.ICDOFF)
	}
	return nil
}

// InCapsuleSize returns how many octets of data a command on an I/O queue may have in its capsule: 0 if none.
func (c *IdentifyController) InCapsuleSize() uint64 {
	if c.SGLS&SGLSInCapsule == 0 || c.IOCCSZ < ctrlMinIOCCSZ {
		return 0
	}
	return uint64(c.IOCCSZ-ctrlMinIOCCSZ) * capsuleUnit
}

// MaxTransfer returns how many octets a command may move, with CAP.MPSMIN (4 bits). 0: there is no limit.
func (c *IdentifyController) MaxTransfer(mpsmin uint8) uint64 {
	if c.MDTS == 0 {
		return 0
	}
	return 1 << (minPageShift + uint(mpsmin&15) + uint(min(c.MDTS, maxMDTS)))
}
