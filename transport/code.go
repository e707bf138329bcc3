package transport

import "fmt"

// A Code is the first 16 bits of a Terminate message: the layer that found an
// error (4 bits), its type (4) and the code (8), as registered by RFC 6580 and
// RFC 6581. A Code is a value and not an error: see [Fault].
type Code uint16

// The layers of a Code.
const (
	LayerRDMAP = 0
	LayerDDP   = 1
	LayerLLP   = 2
)

// MakeCode returns the Code of the given layer, error type and code.
func MakeCode(layer, typ, code uint8) Code {
	return Code(layer&0xf)<<12 | Code(typ&0xf)<<8 | Code(code)
}

// Layer returns the upper four bits.
func (c Code) Layer() uint8 { return uint8(c >> 12) }

// Type returns the error type within the layer.
func (c Code) Type() uint8 { return uint8(c>>8) & 0xf }

// Code returns the code within the type.
func (c Code) Code() uint8 { return uint8(c) }

// Codes of RDMAP (RFC 5040 section 4.8, figure 9).
const (
	RDMAPLocalCatastrophic Code = 0x0000

	RDMAPInvalidSTag      Code = 0x0100
	RDMAPBounds           Code = 0x0101
	RDMAPAccess           Code = 0x0102
	RDMAPNotAssociated    Code = 0x0103
	RDMAPWrap             Code = 0x0104
	RDMAPProtNoInvalidate Code = 0x0109
	RDMAPProtUnspecified  Code = 0x01ff

	RDMAPVersion            Code = 0x0205
	RDMAPOpcode             Code = 0x0206
	RDMAPStreamCatastrophic Code = 0x0207
	RDMAPGlobalCatastrophic Code = 0x0208
	RDMAPOpNoInvalidate     Code = 0x0209
	RDMAPOpUnspecified      Code = 0x02ff
)

// Codes of DDP (RFC 5041 section 7.2).
const (
	DDPLocalCatastrophic Code = 0x1000

	DDPInvalidSTag   Code = 0x1100
	DDPBounds        Code = 0x1101
	DDPNotAssociated Code = 0x1102
	DDPWrap          Code = 0x1103
	DDPTaggedVersion Code = 0x1104

	DDPQueue           Code = 0x1201
	DDPNoBuffer        Code = 0x1202
	DDPMSNRange        Code = 0x1203
	DDPOffset          Code = 0x1204
	DDPTooLong         Code = 0x1205
	DDPUntaggedVersion Code = 0x1206
)

// Codes of MPA, the LLP (RFC 5044 section 8, RFC 6581 section 8).
const (
	MPAConnectionLost    Code = 0x2001
	MPACRC               Code = 0x2002
	MPAMarker            Code = 0x2003
	MPAStartup           Code = 0x2004
	MPALocalCatastrophic Code = 0x2005
	MPAInsufficientIRD   Code = 0x2006
	MPANoRTR             Code = 0x2007
)

var codeNames = map[Code]string{
	RDMAPInvalidSTag:        "RDMAP remote protection: invalid STag",
	RDMAPBounds:             "RDMAP remote protection: base or bounds violation",
	RDMAPAccess:             "RDMAP remote protection: access rights violation",
	RDMAPNotAssociated:      "RDMAP remote protection: STag not associated with the stream",
	RDMAPWrap:               "RDMAP remote protection: TO wrap",
	RDMAPProtNoInvalidate:   "RDMAP remote protection: STag cannot be invalidated",
	RDMAPProtUnspecified:    "RDMAP remote protection: unspecified",
	RDMAPVersion:            "RDMAP remote operation: invalid RDMAP version",
	RDMAPOpcode:             "RDMAP remote operation: unexpected opcode",
	RDMAPStreamCatastrophic: "RDMAP remote operation: catastrophic, this stream",
	RDMAPGlobalCatastrophic: "RDMAP remote operation: catastrophic, global",
	RDMAPOpNoInvalidate:     "RDMAP remote operation: STag cannot be invalidated",
	RDMAPOpUnspecified:      "RDMAP remote operation: unspecified",
	DDPLocalCatastrophic:    "DDP local catastrophic",
	DDPInvalidSTag:          "DDP tagged buffer: invalid STag",
	DDPBounds:               "DDP tagged buffer: base or bounds violation",
	DDPNotAssociated:        "DDP tagged buffer: STag not associated with the stream",
	DDPWrap:                 "DDP tagged buffer: TO wrap",
	DDPTaggedVersion:        "DDP tagged buffer: invalid DDP version",
	DDPQueue:                "DDP untagged buffer: invalid QN",
	DDPNoBuffer:             "DDP untagged buffer: invalid MSN, no buffer available",
	DDPMSNRange:             "DDP untagged buffer: invalid MSN, out of range",
	DDPOffset:               "DDP untagged buffer: invalid MO",
	DDPTooLong:              "DDP untagged buffer: message too long for its buffer",
	DDPUntaggedVersion:      "DDP untagged buffer: invalid DDP version",
	MPAConnectionLost:       "MPA: TCP connection closed, terminated or lost",
	MPACRC:                  "MPA: CRC error",
	MPAMarker:               "MPA: Marker and ULPDU length mismatch",
	MPAStartup:              "MPA: invalid Request or Reply frame",
	MPALocalCatastrophic:    "MPA: local catastrophic",
	MPAInsufficientIRD:      "MPA: insufficient IRD resources",
	MPANoRTR:                "MPA: no matching RTR option",
}

// Assigned reports whether an RFC defines the code.
func (c Code) Assigned() bool {
	_, ok := codeNames[c]
	return ok || c == RDMAPLocalCatastrophic
}

// String returns the name of the code, and its numbers as layer/type/code.
func (c Code) String() string {
	name, ok := codeNames[c]
	if !ok {
		name = "unassigned code"
		if c.Layer() == LayerRDMAP && c.Type() == 0 { // any code octet is legal for this type
			name = "RDMAP local catastrophic"
		}
	}
	return fmt.Sprintf("%s (%d/%d/%02x)", name, c.Layer(), c.Type(), c.Code())
}

// A Fault is a protocol error, with the code that a Terminate message carries for it.
type Fault struct {
	Code Code
	Err  error // details; may be nil
}

func (f *Fault) Error() string {
	if f.Err == nil {
		return f.Code.String()
	}
	return f.Code.String() + ": " + f.Err.Error()
}

func (f *Fault) Unwrap() error { return f.Err }

// Faultf returns a Fault whose Err is made by fmt.Errorf.
func Faultf(c Code, format string, args ...any) *Fault {
	return &Fault{Code: c, Err: fmt.Errorf(format, args...)}
}
