package capsule

import "math"

// A DataKind says where the data of a command are.
type DataKind uint8

// The kinds of data.
const (
	DataNone      DataKind = iota // the command has none
	DataKeyed                     // in memory of the host, to be read or written with RDMA
	DataInCapsule                 // after the SQE
)

// Data says where the data of a command are; it is checked.
type Data struct {
	Kind       DataKind
	Invalidate bool   // keyed: the response is Send with Invalidate of STag, whatever its status
	STag       uint32 // keyed
	TO         uint64 // keyed; TO + Length does not wrap
	Length     uint32 // octets; 0 for DataNone, otherwise at least 1
	Octets     []byte // in the capsule: Length octets, part of the message
}

// Data checks the flags and the SGL descriptor of the command, and returns where its data are. behind holds the
// octets after the SQE, as ParseSQE returned them; it is nil if the target takes no data in capsules. The result
// keeps it. A status other than Success is the answer to the command, whatever the command is; the Data
// then still says whether and what the response invalidates: nothing if PSDT is wrong, since there is then no SGL.
//
// Keyed data of length 0 count as none. The status is StatusInvalidField for wrong flags, for a wrong sub-type,
// and for data in the capsule of a command whose data do not go from the host to the controller;
// StatusInvalidSGLType for other types; StatusDataTransferError for an address that wraps;
// StatusInvalidSGLOffset for octets that are not in the capsule.
//
// The reserved octets of a descriptor of data in the capsule are ignored: Linux leaves octets from the previous use of the
// SQE in them, a part of the key of a keyed descriptor.
func (c *SQE) Data(behind []byte) (Data, Status) {
	var d Data
	if c.Flags&flagsPSDT == FlagSGL {
		d = c.keyed()
	}
	if s := c.CheckFlags(); !s.OK() {
		return d, s
	}
	if s := c.SGL.check(); !s.OK() {
		return d, s
	}
	if c.SGL.Type() == SGLInCapsule {
		return c.inCapsule(behind)
	}
	if d.Kind == DataKeyed && uint64(d.Length) > math.MaxUint64-d.TO {
		return d, StatusDataTransferError
	}
	return d, Success
}

// keyed reads a keyed descriptor. For other descriptors it returns no data.
func (c *SQE) keyed() Data {
	t, n := c.SGL.Type(), c.SGL.Length()
	if t != SGLKeyed && t != SGLKeyedInvalidate || n == 0 {
		return Data{}
	}
	return Data{
		Kind:       DataKeyed,
		Invalidate: t == SGLKeyedInvalidate,
		STag:       c.SGL.Key(),
		TO:         c.SGL.Address(),
		Length:     n,
	}
}

// inCapsule returns the data within the octets after the SQE.
func (c *SQE) inCapsule(behind []byte) (Data, Status) {
	off, n, have := c.SGL.Address(), c.SGL.Length(), uint64(len(behind))
	switch {
	case c.Direction() != HostToController:
		return Data{}, StatusInvalidField
	case off > have || uint64(n) > have-off:
		return Data{}, StatusInvalidSGLOffset
	case n == 0:
		return Data{}, Success
	}
	end := off + uint64(n)
	return Data{Kind: DataInCapsule, Length: n, Octets: behind[off:end:end]}, Success
}

// Exactly checks that the data have the length that the command requires: otherwise it returns StatusInvalidSGLLength.
func (d *Data) Exactly(n uint64) Status {
	if uint64(d.Length) != n {
		return StatusInvalidSGLLength
	}
	return Success
}

// AtLeast checks that the data are as long as the command needs: otherwise it returns StatusInvalidSGLLength.
func (d *Data) AtLeast(n uint64) Status {
	if uint64(d.Length) < n {
		return StatusInvalidSGLLength
	}
	return Success
}
