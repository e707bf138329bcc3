package capsule

// Feature identifiers (Base 2.0, 5.27).
const (
	FeatureVWC         = 0x06 // volatile write cache: bit 0
	FeatureQueues      = 0x07 // number of queues: see QueueCount
	FeatureAsyncEvents = 0x0B // NoticeNamespaces, NoticeDiscovery
	FeatureKATO        = 0x0F // keep alive timeout in milliseconds
	FeatureHostID      = 0x81
)

// Values of GetFeatures.Select.
const (
	SelectCurrent = 0
	SelectDefault = 1
)

// VWCEnabled is the bit of FeatureVWC.
const VWCEnabled = 1

// SetFeatures is the command of that name (Base 2.0, 5.27).
//
//	40 FID | 43 bit 7: SV | 44 value, 32 bits
type SetFeatures struct {
	NSID  uint32
	FID   uint8
	Save  bool
	Value uint32 // CDW11
}

// ParseSetFeatures reads the command.
func ParseSetFeatures(c *SQE) SetFeatures {
	return SetFeatures{NSID: c.NSID, FID: uint8(c.CDW10), Save: c.CDW10>>31 == 1, Value: c.CDW11}
}

// SQE makes the command.
func (m SetFeatures) SQE(cid uint16, sgl SGL) SQE {
	c := newSQE(OpSetFeatures, cid, m.NSID, sgl)
	c.CDW10 = uint32(m.FID) | uint32(bit64(m.Save, 31))
	c.CDW11 = m.Value
	return c
}

// GetFeatures is the command of that name (Base 2.0, 5.15).
//
//	40 FID | 41 SEL 2:0 | 44 CDW11, 32 bits
type GetFeatures struct {
	NSID   uint32
	FID    uint8
	Select uint8  // 3 bits
	Value  uint32 // CDW11; of FeatureHostID bit 0 is EXHID: an identifier of 16 octets
}

// ParseGetFeatures reads the command.
func ParseGetFeatures(c *SQE) GetFeatures {
	return GetFeatures{NSID: c.NSID, FID: uint8(c.CDW10), Select: uint8(c.CDW10 >> 8 & 7), Value: c.CDW11}
}

// SQE makes the command.
func (m GetFeatures) SQE(cid uint16, sgl SGL) SQE {
	c := newSQE(OpGetFeatures, cid, m.NSID, sgl)
	c.CDW10 = uint32(m.FID) | uint32(m.Select&7)<<8
	c.CDW11 = m.Value
	return c
}

// A QueueCount is the value of FeatureQueues, requested or granted.
//
//	15:0 submission queues, 0's based | 31:16 completion queues, 0's based
type QueueCount struct {
	NSQ, NCQ uint16 // 0's based; 0xFFFF is not allowed
}

// Queues returns the count of n queues of each kind, 1 to 0xFFFF.
func Queues(n int) QueueCount { return QueueCount{uint16(n - 1), uint16(n - 1)} }

// ParseQueueCount reads the value.
func ParseQueueCount(v uint32) QueueCount { return QueueCount{uint16(v), uint16(v >> 16)} }

// Value returns the value of the feature.
func (q QueueCount) Value() uint32 { return uint32(q.NSQ) | uint32(q.NCQ)<<16 }

// Check checks the count that a host requests: 0xFFFF is StatusInvalidField.
func (q QueueCount) Check() Status {
	if q.NSQ == 0xFFFF || q.NCQ == 0xFFFF {
		return StatusInvalidField
	}
	return Success
}

// Pairs returns how many pairs of a submission and a completion queue there are: at least 1.
func (q QueueCount) Pairs() int { return int(min(q.NSQ, q.NCQ)) + 1 }
