package cm

import (
	"encoding/binary"
	"fmt"
)

// The start of each block, and the sizes of the blocks.
const (
	magic   = "SCM2"
	version = 1

	flagModeB  = 0x01
	flagSigned = 0x80

	headerSize  = 8
	requestSize = 64 // the fixed part
	replySize   = 56 // the fixed part
	firstSize   = headerSize + macSize
	refusalSize = 20 // without the MAC

	publicSize = 32 // a public key of X25519
	macSize    = 32
)

// A blockType is the kind of a block.
type blockType uint8

const (
	typeRequest blockType = 1 + iota
	typeReply
	typeFirst
	typeRefusal
)

// A header is the start of all blocks.
type header struct {
	suite Suite
	flags uint8
	kind  blockType
}

func (h header) append(b []byte) []byte {
	b = append(b, magic...)
	return append(b, version, uint8(h.suite), h.flags, uint8(h.kind))
}

// parseHeader reads the header of a block, and returns the rest.
func parseHeader(b []byte) (header, []byte, error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return header{}, nil, failure(ReasonNoBlock, "the private data do not begin with %s", magic)
	}
	if len(b) < headerSize {
		return header{}, nil, malformed("%d octets, fewer than a header", len(b))
	}
	if b[4] != version {
		return header{}, nil, failure(ReasonVersion, "version %d", b[4])
	}
	return header{suite: Suite(b[5]), flags: b[6], kind: blockType(b[7])}, b[headerSize:], nil
}

// modeOf reads the flags of a Request, a Reply or the first message.
func modeOf(flags uint8) (Mode, error) {
	switch flags {
	case 0:
		return ModeA, nil
	case flagModeB:
		return ModeB, nil
	default:
		return 0, malformed("unknown flags %#02x", flags)
	}
}

// flags returns the flags of a mode on the wire.
func (m Mode) flags() uint8 {
	if m == ModeB {
		return flagModeB
	}
	return 0
}

// A request is the block of the Request frame.
type request struct {
	suite    Suite
	mode     Mode
	keyID    uint64
	clientID [16]byte
	time     uint64 // nanoseconds since 1970; mode A
	nonce    [16]byte
	qpID     uint32
	public   []byte // suite 2
	app      []byte
}

// append appends the block without its MAC.
func (q *request) append(b []byte) []byte {
	b = header{q.suite, q.mode.flags(), typeRequest}.append(b)
	b = binary.BigEndian.AppendUint64(b, q.keyID)
	b = append(b, q.clientID[:]...)
	b = binary.BigEndian.AppendUint64(b, q.time)
	b = append(b, q.nonce[:]...)
	b = binary.BigEndian.AppendUint32(b, q.qpID)
	b = binary.BigEndian.AppendUint16(b, uint16(len(q.app)))
	b = append(b, 0, 0)
	b = append(b, q.public...)
	return append(b, q.app...)
}

// parseRequest reads the block of a Request frame. If it returns an error, the fields that it has
// read so far are valid, for the log. Slices are parts of b.
func parseRequest(b []byte) (q request, err error) {
	var rest []byte
	if q.suite, q.mode, rest, err = parseStart(b, typeRequest, "Request", requestSize); err != nil {
		return q, err
	}
	q.keyID = binary.BigEndian.Uint64(rest)
	copy(q.clientID[:], rest[8:])
	q.time = binary.BigEndian.Uint64(rest[24:])
	copy(q.nonce[:], rest[32:])
	q.qpID = binary.BigEndian.Uint32(rest[48:])
	q.public, q.app, err = parseTail(q.suite, int(binary.BigEndian.Uint16(rest[52:])), b[requestSize:])
	return q, err
}

// parseStart reads the header of a Request or a Reply, whose fixed part has that size.
func parseStart(b []byte, kind blockType, name string, size int) (s Suite, m Mode, rest []byte, err error) {
	h, rest, err := parseHeader(b)
	switch {
	case err != nil:
		return 0, 0, nil, err
	case !h.suite.known():
		return h.suite, 0, nil, failure(ReasonVersion, "suite %d", h.suite)
	case h.kind != kind:
		return h.suite, 0, nil, malformed("a block of type %d in place of a %s's", h.kind, name)
	}
	if m, err = modeOf(h.flags); err == nil && len(b) < size {
		err = malformed("%d octets, fewer than a %s has", len(b), name)
	}
	return h.suite, m, rest, err
}

// parseTail splits the octets after the fixed part of a Request or a Reply.
func parseTail(s Suite, appLen int, b []byte) (public, app []byte, err error) {
	if want := s.publicLen() + appLen + macSize; len(b) != want {
		return nil, nil, malformed("%d octets of private data of the application need %d behind the fixed part, which has %d", appLen, want, len(b))
	}
	return b[:s.publicLen()], b[s.publicLen() : s.publicLen()+appLen], nil
}

// A reply is the block of an accepting Reply frame.
type reply struct {
	suite    Suite
	mode     Mode
	serverID [16]byte
	time     uint64 // nanoseconds since 1970; mode A
	nonce    [16]byte
	qpID     uint32
	public   []byte // suite 2
	app      []byte
}

// append appends the block without its MAC.
func (p *reply) append(b []byte) []byte {
	b = header{p.suite, p.mode.flags(), typeReply}.append(b)
	b = append(b, p.serverID[:]...)
	b = binary.BigEndian.AppendUint64(b, p.time)
	b = append(b, p.nonce[:]...)
	b = binary.BigEndian.AppendUint32(b, p.qpID)
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.app)))
	b = append(b, 0, 0)
	b = append(b, p.public...)
	return append(b, p.app...)
}

// parseReply reads the block of an accepting Reply frame. Slices are parts of b.
func parseReply(b []byte) (p reply, err error) {
	var rest []byte
	if p.suite, p.mode, rest, err = parseStart(b, typeReply, "Reply", replySize); err != nil {
		return p, err
	}
	copy(p.serverID[:], rest)
	p.time = binary.BigEndian.Uint64(rest[16:])
	copy(p.nonce[:], rest[24:])
	p.qpID = binary.BigEndian.Uint32(rest[40:])
	p.public, p.app, err = parseTail(p.suite, int(binary.BigEndian.Uint16(rest[44:])), b[replySize:])
	return p, err
}

// firstHeader returns the header of the initiator's first message.
func firstHeader(s Suite, m Mode) []byte {
	return header{s, m.flags(), typeFirst}.append(nil)
}

// parseFirst reads the first message of the initiator. The MAC is a part of b.
func parseFirst(b []byte) (s Suite, m Mode, mac []byte, err error) {
	h, mac, err := parseHeader(b)
	if err != nil {
		return 0, 0, nil, err
	}
	if h.kind != typeFirst {
		return 0, 0, nil, malformed("a block of type %d in place of the first message", h.kind)
	}
	if m, err = modeOf(h.flags); err != nil {
		return 0, 0, nil, err
	}
	if len(b) != firstSize {
		return 0, 0, nil, malformed("a first message of %d octets in place of %d", len(b), firstSize)
	}
	return h.suite, m, mac, nil
}

// A refusal is the block of a Reply frame that refuses.
type refusal struct {
	code    Code
	keyHint uint64
	signed  bool
	mac     []byte // if it is signed
	app     []byte // behind the MAC
}

// append appends the block without its MAC and the application's data.
func (j *refusal) append(b []byte) []byte {
	h := header{kind: typeRefusal}
	if j.signed {
		h.flags = flagSigned
	}
	b = append(h.append(b), uint8(j.code), 0, 0, 0)
	return binary.BigEndian.AppendUint64(b, j.keyHint)
}

// parseRefusal reads the block of a refusing Reply frame. Slices are parts of b.
func parseRefusal(b []byte) (j refusal, err error) {
	h, rest, err := parseHeader(b)
	if err != nil {
		return j, err
	}
	if h.kind != typeRefusal || h.suite != 0 {
		return j, malformed("type %d and suite %d in place of a refusal's", h.kind, h.suite)
	}
	if len(b) < refusalSize {
		return j, malformed("%d octets, fewer than a refusal has", len(b))
	}
	j.code, j.keyHint = Code(rest[0]), binary.BigEndian.Uint64(rest[4:])
	if j.code < CodeRefused || j.code > CodeApplication {
		return j, malformed("a refusal with code %d", j.code)
	}
	want := uint8(0)
	if j.signed = j.code.signed(); j.signed {
		want = flagSigned
	}
	if h.flags != want {
		return j, malformed("a refusal with code %v and flags %#02x", j.code, h.flags)
	}
	return j, j.parseTail(b[refusalSize:])
}

// parseTail reads the octets after the fixed part.
func (j *refusal) parseTail(b []byte) error {
	switch {
	case !j.signed && len(b) > 0, j.code == CodeKeyRetired && len(b) > macSize:
		return malformed("%d octets behind a refusal with code %v", len(b), j.code)
	case j.signed && len(b) < macSize:
		return malformed("%d octets in place of the MAC of a refusal", len(b))
	case j.signed:
		j.mac, j.app = b[:macSize], b[macSize:]
	}
	return nil
}

// malformed returns the error of a malformed block.
func malformed(format string, args ...any) error {
	return failure(ReasonMalformed, format, args...)
}

// failure returns an error with a reason.
func failure(r Reason, format string, args ...any) error {
	return &Error{Reason: r, Err: fmt.Errorf(format, args...)}
}
