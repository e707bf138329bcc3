package capsule

// Offsets of properties (Fabrics 1.1, 3.5; Base 2.0, 3.1.3).
const (
	PropCAP  = 0x00 // 8 octets, read-only
	PropVS   = 0x08 // 4 octets, read-only
	PropCC   = 0x14 // 4 octets
	PropCSTS = 0x1C // 4 octets, read-only
)

// propertySize returns the length of a property in octets, 0 if there is none at the offset.
func propertySize(off uint32) int {
	switch off {
	case PropCAP:
		return 8
	case PropVS, PropCC, PropCSTS:
		return 4
	}
	return 0
}

// A Property is the command Property Get, or Property Set.
//
//	40 ATTRIB: size 2:0, 0 for 4 octets and 1 for 8 | 44 OFST, 32 bits | 48 VALUE, 64 bits, of Property Set
type Property struct {
	Set    bool
	Attrib uint8 // bits 2:0
	Offset uint32
	Value  uint64 // of Property Set
}

// ParseProperty reads a Fabrics command of type FCPropertyGet or FCPropertySet.
func ParseProperty(c *SQE) Property {
	m := Property{Set: c.FCType() == FCPropertySet, Attrib: uint8(c.CDW10 & 7), Offset: c.CDW11}
	if m.Set {
		m.Value = uint64(c.CDW13)<<32 | uint64(c.CDW12)
	}
	return m
}

// GetProperty returns the command that reads a property, one of the constants.
func GetProperty(off uint32) Property { return Property{Attrib: attribOf(off), Offset: off} }

// SetProperty returns the command that writes a property.
func SetProperty(off uint32, v uint64) Property {
	return Property{Set: true, Attrib: attribOf(off), Offset: off, Value: v}
}

func attribOf(off uint32) uint8 {
	if propertySize(off) == 8 {
		return 1
	}
	return 0
}

// Check checks that the property exists, that the command uses its size, and that Property Set may write it.
// Otherwise the answer is StatusInvalidField.
func (m Property) Check() Status {
	size := propertySize(m.Offset)
	if size == 0 || m.Attrib != attribOf(m.Offset) || m.Set && m.Offset != PropCC {
		return StatusInvalidField
	}
	return Success
}

// SQE makes the command, which has no data.
func (m Property) SQE(cid uint16) SQE {
	fc := FCPropertyGet
	if m.Set {
		fc = FCPropertySet
	}
	c := newSQE(OpFabrics, cid, uint32(fc), NullSGL())
	c.CDW10, c.CDW11 = uint32(m.Attrib&7), m.Offset
	if m.Set {
		c.CDW12, c.CDW13 = uint32(m.Value), uint32(m.Value>>32)
	}
	return c
}

// A Disconnect is the command that ends an I/O queue. Linux does not send it.
type Disconnect struct{ RecFmt uint16 }

// ParseDisconnect reads a Fabrics command of type FCDisconnect.
func ParseDisconnect(c *SQE) Disconnect { return Disconnect{uint16(c.CDW10)} }

// SQE makes the command, which has no data.
func (m Disconnect) SQE(cid uint16) SQE {
	c := newSQE(OpFabrics, cid, uint32(FCDisconnect), NullSGL())
	c.CDW10 = uint32(m.RecFmt)
	return c
}
