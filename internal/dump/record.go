package dump

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Kind is the kind of a [Record].
type Kind string

// The kinds.
const (
	KindConnection Kind = "connection" // a TCP connection or an SCTP association, before its first other record
	KindRequest    Kind = "request"    // an MPA Request
	KindReply      Kind = "reply"      // an MPA Reply
	KindFPDU       Kind = "fpdu"       // an MPA FPDU: a DDP segment
	KindControl    Kind = "control"    // a session control message of DDP over SCTP
	KindSegment    Kind = "segment"    // a DDP segment over SCTP
	KindInit       Kind = "init"       // an SCTP INIT or INIT ACK
	KindEnd        Kind = "end"        // FIN, RST, ABORT or SHUTDOWN
	KindGap        Kind = "gap"        // octets that the capture lacks, or that are not decoded
	KindError      Kind = "error"      // something that cannot be decoded
)

// A Record is a line of the output: one FPDU, or one set-up frame. Its JSON keys are stable. In JSON, STags and Tagged
// Offsets are hexadecimal strings, since they may exceed the integers that JSON is certain to preserve.
type Record struct {
	Packet  int       `json:"packet"`               // the packet that completed it
	Octet   int64     `json:"octet"`                // the offset of that packet's header in the capture
	Time    time.Time `json:"time"`                 // zero, in the year 1: the capture contains no time for the packet
	Conn    int       `json:"connection,omitempty"` // the number of its connection
	Src     string    `json:"src,omitempty"`
	Dst     string    `json:"dst,omitempty"`
	Reverse bool      `json:"from_responder,omitempty"` // the sender is not the end that began the connection
	Kind    Kind      `json:"kind"`
	Text    string    `json:"text,omitempty"` // description, for kinds without their own fields

	Setup   *Setup   `json:"setup,omitempty"`
	SCTP    *SCTP    `json:"sctp,omitempty"`
	MPA     *MPA     `json:"mpa,omitempty"`
	DDP     *DDP     `json:"ddp,omitempty"`
	RDMAP   *RDMAP   `json:"rdmap,omitempty"`
	Private []Block  `json:"private,omitempty"` // from the outside in
	Message *Block   `json:"message,omitempty"` // of the protocol above RDMAP
	Octets  int64    `json:"octets,omitempty"`  // of a gap
	Errors  []string `json:"errors,omitempty"`
}

// A Setup is a Request, a Reply, or a session control message.
type Setup struct {
	Function   string   `json:"function,omitempty"` // SCTP
	Revision   int      `json:"revision,omitempty"` // MPA
	Markers    bool     `json:"markers"`
	CRC        bool     `json:"crc"`
	Reject     bool     `json:"reject"`
	Enhanced   bool     `json:"enhanced"`
	PeerToPeer bool     `json:"peer_to_peer"`
	RTR        []string `json:"rtr,omitempty"`
	IRD        *int     `json:"ird,omitempty"` // absent: not negotiated
	ORD        *int     `json:"ord,omitempty"`
	Private    int      `json:"private_length"` // the octets of the ULP
	Length     int      `json:"pd_length"`      // the same including the enhanced data
}

// An MPA is the frame around a segment.
type MPA struct {
	Length   int    `json:"ulpdu_length"`
	Position uint64 `json:"position"` // of the FPDU, in octets from the first one of Full Operation on
	CRC      string `json:"crc"`      // "valid", "invalid" or "unused"
	Markers  int    `json:"markers,omitempty"`
}

// The states of an MPA's CRC.
const (
	CRCValid   = "valid"
	CRCInvalid = "invalid"
	CRCUnused  = "unused"
)

// An SCTP is the DATA chunk that carries a message.
type SCTP struct {
	TSN    uint32 `json:"tsn"`
	Stream uint16 `json:"stream"`
	PPID   uint32 `json:"ppid"`
	SSN    uint16 `json:"ddp_ssn"`
}

// A DDP is the header of a segment, of one of the two models.
type DDP struct {
	Version int     `json:"version"`
	Tagged  bool    `json:"tagged"`
	Last    bool    `json:"last"`
	STag    Hex32   `json:"stag,omitempty"`
	TO      *Hex64  `json:"to,omitempty"`
	QN      *uint32 `json:"qn,omitempty"`
	MSN     *uint32 `json:"msn,omitempty"`
	MO      *uint32 `json:"mo,omitempty"`
	Length  int     `json:"length"` // of the payload
}

// An RDMAP describes the message of a segment.
type RDMAP struct {
	Version    int        `json:"version"`
	Opcode     int        `json:"opcode"`
	Name       string     `json:"name"`
	Invalidate Hex32      `json:"invalidate,omitempty"`
	Fields     Fields     `json:"fields,omitempty"` // of the header at the beginning of the message
	Terminate  *Terminate `json:"terminate,omitempty"`
}

// A Terminate is why a stream ends.
type Terminate struct {
	Layer   int    `json:"layer"`
	Type    int    `json:"type"`
	Code    int    `json:"code"`
	Name    string `json:"name"`
	Section string `json:"section"`
	Swapped bool   `json:"swapped,omitempty"`        // Linux siw has exchanged layer and type
	Length  *int   `json:"segment_length,omitempty"` // of the segment in error
	Segment string `json:"segment,omitempty"`        // its header, in words
}

// A Block is a part of the private data, or a message, that a protocol above RDMAP has written.
type Block struct {
	Protocol string `json:"protocol"`
	Message  string `json:"message"`
	Fields   Fields `json:"fields,omitempty"`
}

// A Field is a named value.
type Field struct {
	Name  string
	Value any
}

// Fields are the members of a JSON object, in order.
type Fields []Field

// MarshalJSON writes the object.
func (f Fields) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, x := range f {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(x.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(x.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

func (f *Fields) add(name string, value any) { *f = append(*f, Field{name, value}) }

// A Hex32 is an STag.
type Hex32 string

func hex32(v uint32) Hex32 { return Hex32(fmt.Sprintf("0x%08x", v)) }

// A Hex64 is a Tagged Offset.
type Hex64 string

func hex64(v uint64) Hex64 { return Hex64(fmt.Sprintf("%#x", v)) }

func (r *Record) fail(format string, args ...any) {
	r.Errors = append(r.Errors, fmt.Sprintf(format, args...))
}
