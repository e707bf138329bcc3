package capsule

import "encoding/binary"

// Types of SGL descriptors: the type in bits 7:4 and the sub-type in bits 3:0 of the last octet.
const (
	SGLInCapsule       = 0x01 // data block, offset into the capsule
	SGLKeyed           = 0x40 // keyed data block
	SGLKeyedInvalidate = 0x4F // keyed data block, whose key the response invalidates

	sglAddress       = 0x00
	sglTypeBlock     = 0x0
	sglTypeKeyed     = 0x4
	maxSGLKeyedBytes = 1<<24 - 1
)

// An SGL is the SGL descriptor of a command (Base 2.0, 4.1.2; RDMA transport 1.0): where its data is. A command
// has exactly one.
//
//	keyed data block    0 address, 64 bits | 8 length, 24 bits | 11 key, 32 bits | 15 type 0x40 or 0x4F
//	in-capsule offset   0 offset, 64 bits | 8 length, 32 bits | 12 reserved[3] | 15 type 0x01
//
// The address is a Tagged Offset and the key an STag: the same numbers that DDP sends big-endian. Linux sends an
// address of kernel memory, with bit 63 set. It must be compared as uint64, and nothing may be added to it before
// it is known that the sum does not wrap.
type SGL [16]byte

// NullSGL returns the SGL of commands without data: keyed, of length 0.
func NullSGL() SGL { return SGL{15: SGLKeyed} }

// KeyedSGL describes memory of the host: n octets of the STag, from the Tagged Offset to on. If invalidate is set,
// the target invalidates the STag by a Send with Invalidate. It panics if n has more than 24 bits.
func KeyedSGL(stag uint32, to uint64, n uint32, invalidate bool) SGL {
	if n > maxSGLKeyedBytes {
		panic("capsule: length of a keyed SGL above 2^24-1")
	}
	var s SGL
	binary.LittleEndian.PutUint64(s[0:], to)
	binary.LittleEndian.PutUint64(s[8:], uint64(stag)<<24|uint64(n))
	s[15] = SGLKeyed
	if invalidate {
		s[15] = SGLKeyedInvalidate
	}
	return s
}

// InCapsuleSGL describes n octets of the capsule, from an offset after the SQE on.
func InCapsuleSGL(off uint64, n uint32) SGL {
	var s SGL
	binary.LittleEndian.PutUint64(s[0:], off)
	binary.LittleEndian.PutUint32(s[8:], n)
	s[15] = SGLInCapsule
	return s
}

// Type returns the type and sub-type.
func (s *SGL) Type() uint8 { return s[15] }

// Address returns the Tagged Offset of a keyed descriptor, or the offset of an in-capsule one.
func (s *SGL) Address() uint64 { return binary.LittleEndian.Uint64(s[0:]) }

// Key returns the STag of a keyed descriptor.
func (s *SGL) Key() uint32 { return binary.LittleEndian.Uint32(s[11:]) }

// Length returns the length of the data, in octets: 24 bits in a keyed descriptor, 32 in others.
func (s *SGL) Length() uint32 {
	n := binary.LittleEndian.Uint32(s[8:])
	if s.Type()>>4 == sglTypeKeyed {
		n &= maxSGLKeyedBytes
	}
	return n
}

// check returns the status with which a target answers the type of the descriptor.
func (s *SGL) check() Status {
	switch t := s.Type(); {
	case t == SGLInCapsule || t == SGLKeyed || t == SGLKeyedInvalidate:
		return Success
	case t != sglAddress && (t>>4 == sglTypeBlock || t>>4 == sglTypeKeyed):
		return StatusInvalidField
	}
	return StatusInvalidSGLType
}
