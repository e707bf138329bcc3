package capsule

// Values of CNS: the data that Identify requests.
const (
	CNSNamespace     = 0x00
	CNSController    = 0x01
	CNSNamespaceList = 0x02
	CNSDescriptors   = 0x03
	CNSCommandSet    = 0x06 // the controller, as the command set CSI sees it
)

// PageSize is the length of the data of Identify, in octets.
const PageSize = 4096

// Identify is the command of that name (Base 2.0, 5.17), with data of PageSize octets.
//
//	40 CNS | 42 CNTID, 16 bits | 47 CSI
type Identify struct {
	NSID  uint32
	CNS   uint8
	CNTID uint16
	CSI   uint8
}

// ParseIdentify reads the command.
func ParseIdentify(c *SQE) Identify {
	return Identify{
		NSID: c.NSID, CNS: uint8(c.CDW10), CNTID: uint16(c.CDW10 >> 16), CSI: uint8(c.CDW11 >> 24),
	}
}

// SQE makes the command.
func (m Identify) SQE(cid uint16, sgl SGL) SQE {
	c := newSQE(OpIdentify, cid, m.NSID, sgl)
	c.CDW10 = uint32(m.CNS) | uint32(m.CNTID)<<16
	c.CDW11 = uint32(m.CSI) << 24
	return c
}
