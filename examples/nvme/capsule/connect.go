package capsule

import (
	"encoding/binary"
	"fmt"
)

const (
	// ConnectDataSize is the length of the data of Connect, in octets.
	ConnectDataSize = 1024
	// AnyController is the CNTLID in Connect on the admin queue: the target makes a controller.
	AnyController = 0xFFFF
	// MaxCNTLID is the largest CNTLID of a controller.
	MaxCNTLID = 0xFFEF
	// AttrNoFlowControl is the bit of CATTR that disables SQ flow control.
	AttrNoFlowControl = 1 << 2

	connectAuth = 3 << 17
)

// Connect is the command that connects a queue to a controller (Fabrics 1.1, 3.3).
//
//	40 RECFMT, 16 bits | 42 QID, 16 bits | 44 SQSIZE, 16 bits | 46 CATTR | 47 reserved | 48 KATO, 32 bits
type Connect struct {
	RecFmt uint16 // 0
	QID    uint16
	SQSize uint16 // 0's based
	CAttr  uint8
	KATO   uint32 // keep alive timeout in milliseconds; 0: none
}

// ParseConnect reads a command for which IsConnect reports true.
func ParseConnect(c *SQE) Connect {
	return Connect{
		RecFmt: uint16(c.CDW10),
		QID:    uint16(c.CDW10 >> 16),
		SQSize: uint16(c.CDW11),
		CAttr:  uint8(c.CDW11 >> 16),
		KATO:   c.CDW12,
	}
}

// SQE makes the command.
func (m Connect) SQE(cid uint16, sgl SGL) SQE {
	c := newSQE(OpFabrics, cid, uint32(FCConnect), sgl)
	c.CDW10 = uint32(m.RecFmt) | uint32(m.QID)<<16
	c.CDW11 = uint32(m.SQSize) | uint32(m.CAttr)<<16
	c.CDW12 = m.KATO
	return c
}

// ConnectData is the data of Connect.
//
//	0 HOSTID[16] | 16 CNTLID, 16 bits | 18 reserved[238] | 256 SUBNQN[256] | 512 HOSTNQN[256] | 768 reserved[256]
type ConnectData struct {
	HostID  [16]byte
	CNTLID  uint16
	SubNQN  string // as received, up to the first NUL or whole: see CheckNQN
	HostNQN string // likewise
}

// ParseConnectData reads the data of Connect. If the length is not 1024, the status is StatusInvalidSGLLength. The
// names are not checked, since a target answers differently to each of them.
func ParseConnectData(b []byte) (ConnectData, Status) {
	if len(b) != ConnectDataSize {
		return ConnectData{}, StatusInvalidSGLLength
	}
	return ConnectData{
		HostID:  [16]byte(b[0:16]),
		CNTLID:  binary.LittleEndian.Uint16(b[16:]),
		SubNQN:  untilNUL(b[256 : 256+nqnSize]),
		HostNQN: untilNUL(b[512 : 512+nqnSize]),
	}, Success
}

// CheckHost checks the name and the identifier of the host. The status is StatusConnectParameter, with the wrong
// parameter, or Success.
func (d *ConnectData) CheckHost() (ConnectParameter, Status) {
	if CheckNQN(d.HostNQN) != nil {
		return ParamHostNQN, StatusConnectParameter
	}
	if d.HostID == [16]byte{} {
		return ParamHostID, StatusConnectParameter
	}
	return ConnectParameter{}, Success
}

// Put writes the 1024 octets of the data to b, which must be long enough. The names must have passed CheckNQN.
func (d *ConnectData) Put(b []byte) {
	b = b[:ConnectDataSize]
	clear(b)
	copy(b, d.HostID[:])
	binary.LittleEndian.PutUint16(b[16:], d.CNTLID)
	putNUL(b[256:256+nqnSize], d.SubNQN)
	putNUL(b[512:512+nqnSize], d.HostNQN)
}

// A ConnectParameter says which octets StatusConnectParameter refers to: DW0 of the response.
type ConnectParameter struct {
	InData bool   // IATTR: the offset is in the data, and not in the SQE
	Offset uint16 // IPO
}

// The parameters.
var (
	ParamQID     = ConnectParameter{false, 42}
	ParamSQSize  = ConnectParameter{false, 44}
	ParamHostID  = ConnectParameter{true, 0}
	ParamCNTLID  = ConnectParameter{true, 16}
	ParamSubNQN  = ConnectParameter{true, 256}
	ParamHostNQN = ConnectParameter{true, 512}
)

var parameterNames = map[ConnectParameter]string{
	ParamQID: "QID", ParamSQSize: "SQSIZE", ParamHostID: "HOSTID", ParamCNTLID: "CNTLID",
	ParamSubNQN: "SUBNQN", ParamHostNQN: "HOSTNQN",
}

// DW0 returns the parameter as DW0 of the response.
func (p ConnectParameter) DW0() uint32 {
	if p.InData {
		return 1<<16 | uint32(p.Offset)
	}
	return uint32(p.Offset)
}

func (p ConnectParameter) String() string {
	where := "command"
	if p.InData {
		where = "data"
	}
	name, known := parameterNames[p]
	if !known {
		name = "unknown field"
	}
	return fmt.Sprintf("%s, at offset %d of the %s", name, p.Offset, where)
}

// A ConnectError is the error of a Connect that failed.
type ConnectError struct {
	Status    Status
	Parameter ConnectParameter // for StatusConnectParameter
}

func (e *ConnectError) Error() string {
	if e.Status.Is(StatusConnectParameter) {
		return fmt.Sprintf("nvme: connect: %v: %v", e.Status, e.Parameter)
	}
	return "nvme: connect: " + e.Status.String()
}

// Unwrap returns the StatusError of the status.
func (e *ConnectError) Unwrap() error { return StatusError{e.Status} }

// ParseConnectResponse reads the response to Connect: the CNTLID, or a *ConnectError. It also returns an error for a
// CNTLID that no controller can have, and for a target that requests authentication.
func ParseConnectResponse(r *CQE) (cntlid uint16, err error) {
	if !r.Status.OK() {
		e := &ConnectError{Status: r.Status}
		if r.Status.Is(StatusConnectParameter) {
			e.Parameter = ConnectParameter{InData: r.DW0>>16&1 == 1, Offset: uint16(r.DW0)}
		}
		return 0, e
	}
	if r.DW0&connectAuth != 0 {
		return 0, fmt.Errorf("nvme: the target asks for authentication of the host")
	}
	cntlid = uint16(r.DW0)
	if cntlid > MaxCNTLID {
		return 0, malformed("CNTLID %#x", cntlid)
	}
	return cntlid, nil
}
