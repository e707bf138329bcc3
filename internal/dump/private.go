package dump

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// maxShown is how many octets of unknown private data are shown.
const maxShown = 32

// setup decodes what a set-up frame reveals about the protocol above RDMAP.
func (c *conn) setup(r *Record, dir int, isRequest bool, b []byte) {
	u := &c.ulp
	if isRequest {
		*u = ulp{initiator: dir}
		server := c.server
		if dir == 1 {
			server = c.client
		}
		u.named(c.d.cfg, server.Port())
	}
	if block, inner, ok := cmBlock(b); ok {
		r.Private = append(r.Private, block)
		u.fin = u.fin || block.Message == "REQ" && b[6]&cmModeB != 0
		b = inner
	}
	if offer, rest, ok := commit.CutOffer(b); ok {
		r.Private = append(r.Private, Block{"commit", "offer", Fields{{"regions", offer.Regions}, {"octets", offer.Octets}}})
		b = rest
	}
	if len(b) == 0 {
		return
	}
	r.Private = append(r.Private, u.application(b, dir, isRequest, r.Setup.Reject))
}

// application decodes the innermost private data, and records the protocol that they name.
func (u *ulp) application(b []byte, dir int, isRequest, reject bool) Block {
	if block, ok := rpcPrivate(b); ok {
		u.protocol = protocolRPC
		return block
	}
	if block, ok := u.nvmePrivate(b, isRequest, reject); ok {
		return block
	}
	if block, ok := u.rsocketPrivate(b, dir); ok && !reject {
		return block
	}
	return Block{"application", "private data", Fields{{"octets", len(b)}, {"begins", fmt.Sprintf("%x", b[:min(len(b), maxShown)])}}}
}

// nvmePrivate reads private data that are those of NVMe according to the port or their contents.
func (u *ulp) nvmePrivate(b []byte, isRequest, reject bool) (Block, bool) {
	if u.protocol != protocolNVMe && (u.protocol != "" || !looksLikeNVMe(b, isRequest, u.nvmeAsked)) {
		return Block{}, false
	}
	block, ok := nvmePrivate(b, isRequest, reject)
	switch {
	case !ok:
	case isRequest:
		u.nvmeAsked, u.qid = true, binary.LittleEndian.Uint16(b[2:])
	case u.nvmeAsked:
		u.protocol = protocolNVMe
	}
	return block, ok
}

// rsocketPrivate reads private data of rsocket. The private data of both sides reveal the protocol.
func (u *ulp) rsocketPrivate(b []byte, dir int) (Block, bool) {
	if u.protocol != "" && u.protocol != protocolRsocket {
		return Block{}, false
	}
	block, ok := rsocketPrivate(b)
	if ok {
		u.bigEndian[dir], u.asked[dir] = b[1]&1 != 0, true
	}
	if u.asked[0] && u.asked[1] {
		u.protocol = protocolRsocket
	}
	return block, ok
}

// Constants of the blocks of package cm, which begin with
//
//	0 "SCM2" | 4 version | 5 suite | 6 flags | 7 type
const (
	cmMagic  = "SCM2"
	cmHeader = 8
	cmModeB  = 0x01
	cmSigned = 0x80
	cmMAC    = 32
	cmKey    = 32 // of X25519, in suite 2
	cmSuiteX = 2

	cmReq = 1
	cmRep = 2
	cmFin = 3
	cmRej = 4
)

var cmCodes = map[byte]string{
	1: "REFUSED", 2: "TRY_MODE_B", 3: "VERSION", 4: "BUSY", 5: "KEY_RETIRED", 6: "APPLICATION",
}

// cmBlock reads a block of package cm, and returns the private data within it.
func cmBlock(b []byte) (block Block, inner []byte, ok bool) {
	if len(b) < cmHeader || string(b[:4]) != cmMagic {
		return block, b, false
	}
	block = Block{Protocol: "cm", Fields: Fields{{"version", b[4]}, {"suite", b[5]}}}
	mode := "A"
	if b[6]&cmModeB != 0 {
		mode = "B"
	}
	be := binary.BigEndian
	lengthAt, bodyAt := 0, 0
	switch {
	case b[7] == cmReq && len(b) >= 64:
		block.Message = "REQ"
		block.Fields = append(block.Fields, Field{"mode", mode}, Field{"key", hex64(be.Uint64(b[8:]))},
			Field{"client", fmt.Sprintf("%x", b[16:32])}, Field{"time", be.Uint64(b[32:])})
		lengthAt, bodyAt = 60, 64
	case b[7] == cmRep && len(b) >= 56:
		block.Message = "REP"
		block.Fields = append(block.Fields, Field{"mode", mode}, Field{"server", fmt.Sprintf("%x", b[8:24])}, Field{"time", be.Uint64(b[24:])})
		lengthAt, bodyAt = 52, 56
	case b[7] == cmRej && len(b) >= 20:
		return cmReject(block, b)
	case b[7] == cmFin && len(b) == cmHeader+cmMAC:
		block.Message = "FIN"
		block.Fields.add("mode", mode)
		return block, nil, true
	default:
		block.Message = fmt.Sprintf("type %d of %d octets, which is none", b[7], len(b))
		return block, nil, true
	}
	if b[5] == cmSuiteX {
		bodyAt += cmKey
	}
	size := int(be.Uint16(b[lengthAt:]))
	if len(b) != bodyAt+size+cmMAC {
		block.Fields.add("wrong_length", len(b))
		return block, nil, true
	}
	return block, b[bodyAt : bodyAt+size], true
}

func cmReject(block Block, b []byte) (Block, []byte, bool) {
	block.Message = "REJ"
	name := cmp.Or(cmCodes[b[8]], "unknown")
	signed := b[6]&cmSigned != 0
	block.Fields = append(block.Fields, Field{"code", b[8]}, Field{"name", name}, Field{"signed", signed})
	if hint := binary.BigEndian.Uint64(b[12:]); hint != 0 {
		block.Fields.add("key", hex64(hint))
	}
	if signed && len(b) >= 20+cmMAC {
		return block, b[20+cmMAC:], true
	}
	return block, nil, true
}

// rpcPrivate reads the private data of RPC over RDMA (RFC 8797).
func rpcPrivate(b []byte) (Block, bool) {
	const magic, size = 0xf6ab0e18, 8
	if len(b) < size || binary.BigEndian.Uint32(b) != magic {
		return Block{}, false
	}
	return Block{protocolRPC, "private data", Fields{
		{"version", b[4]}, {"remote_invalidation", b[5]&1 != 0}, {"send", (int(b[6]) + 1) << 10}, {"receive", (int(b[7]) + 1) << 10},
	}}, true
}

// looksLikeNVMe reports whether private data can only be those of NVMe: the reserved octets are zero, and the sizes
// are consistent. A Reply alone is not conclusive.
func looksLikeNVMe(b []byte, isRequest, asked bool) bool {
	if !isRequest {
		return asked
	}
	if len(b) != capsule.PrivateSize {
		return false
	}
	for _, x := range b[10:] {
		if x != 0 {
			return false
		}
	}
	q, status := capsule.ParseRequest(b)
	return status == 0 && q.HSQSize > 0 && q.HRQSize >= q.HSQSize
}

// nvmePrivate reads the private data of NVMe (RDMA transport 1.0, 3.3).
func nvmePrivate(b []byte, isRequest, reject bool) (Block, bool) {
	switch {
	case isRequest:
		q, status := capsule.ParseRequest(b)
		return Block{protocolNVMe, "request", Fields{{"qid", q.QID}, {"hrqsize", q.HRQSize}, {"hsqsize", q.HSQSize}, {"cntlid", q.CNTLID}}}, status == 0
	case reject:
		e := capsule.ParseReject(b)
		return Block{protocolNVMe, "reject", Fields{{"error", e.Error()}}}, len(b) >= capsule.RejectSize
	}
	a, err := capsule.ParseAccept(b)
	return Block{protocolNVMe, "accept", Fields{{"crqsize", a.CRQSize}}}, err == nil
}

// rsocketPrivate reads the private data of librdmacm's stream sockets:
//
//	0 version | 1 flags | 2 credits | 4 zero[3] | 7 iomap | 8 sgl.addr | 16 sgl.key | 20 sgl.length | 24 buf.addr | 32 buf.key | 36 buf.length
func rsocketPrivate(b []byte) (Block, bool) {
	const size, version, maxSlots = 40, 1, 64
	be := binary.BigEndian
	if len(b) < size || b[0] != version || b[1]&^3 != 0 || b[4]|b[5]|b[6] != 0 {
		return Block{}, false
	}
	credits, slots, half := be.Uint16(b[2:]), be.Uint32(b[20:]), be.Uint32(b[36:])
	if credits == 0 || slots == 0 || slots > maxSlots || half == 0 {
		return Block{}, false
	}
	return Block{protocolRsocket, "private data", Fields{
		{"credits", credits},
		{"table_to", hex64(be.Uint64(b[8:]))},
		{"table_stag", hex32(be.Uint32(b[16:]))},
		{"slots", slots},
		{"buffer_to", hex64(be.Uint64(b[24:]))},
		{"buffer_stag", hex32(be.Uint32(b[32:]))},
		{"buffer_octets", half},
	}}, true
}
