package rma

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// The regions of a server whose peer is hostile, with the rights that the peer has by its keys.
const (
	readRegion    = regionID // read
	foreignRegion = 2        // nothing
	writeRegion   = 3        // read and write
)

// A hostilePeer is a peer that has agreed, and then does what the octets of an input determine. Its outer tags
// are right.
type hostilePeer struct {
	*raw
	in      []byte
	client  bool                            // otherwise it is the server
	usual   []wire.Type                     // message types that it sends most of the time
	sealers map[uint64][4]*regionkey.Sealer // by region and operation
	own     []uint32                        // STags of sinks of its own
	dataCtr uint64

	mu    sync.Mutex
	last  uint64 // number of an operation of its own
	known []knownOp
}

// A knownOp is an operation that one side has requested.
type knownOp struct {
	id          op.ID
	region, off uint64
	length, tag uint32 // of the sink that the other side has lent
	salt        [16]byte
}

// theOctets is the content of the blobs of a hostile peer.
const theOctets = 0xee

func (h *hostilePeer) byte() int {
	if len(h.in) == 0 {
		return 0
	}
	b := h.in[0]
	h.in = h.in[1:]
	return int(b)
}

// anyOf returns an element of a list, which the input chooses, or the zero value if the list is empty.
func anyOf[T any](h *hostilePeer, list []T) (v T) {
	if b := h.byte(); len(list) > 0 {
		v = list[b%len(list)]
	}
	return v
}

// listens remembers the contents of the other side's messages, until the connection ends.
func (h *hostilePeer) listens() {
	for {
		msg, _, err := h.next()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.learns(msg)
		h.mu.Unlock()
	}
}

// learns remembers what a message, of any side, says about an operation. mu is held.
func (h *hostilePeer) learns(msg []byte) {
	be, d := binary.BigEndian, knownOp{id: id(msg)}
	switch wire.Type(msg[1]) {
	case wire.TypeReadReq:
		d.region, d.off, d.length, d.tag = be.Uint64(msg[24:]), be.Uint64(msg[40:]), be.Uint32(msg[56:]), be.Uint32(msg[36:])
	case wire.TypeWriteReq:
		d.region, d.off, d.length, d.tag = be.Uint64(msg[24:]), be.Uint64(msg[40:]), be.Uint32(msg[36:]), be.Uint32(msg[48:])
	case wire.TypePull:
		for i := range h.known {
			if o := &h.known[i]; o.id == d.id {
				copy(o.salt[:], msg[24:])
				o.tag = be.Uint32(msg[40:])
			}
		}
		return
	default:
		return
	}
	h.known = append(h.known, d)
}

// someOp returns one of the latest operations.
func (h *hostilePeer) someOp() knownOp {
	h.mu.Lock()
	defer h.mu.Unlock()
	return anyOf(h, h.known[max(0, len(h.known)-4):])
}

// newID returns the ID of a new operation.
func (h *hostilePeer) newID() op.ID {
	h.last++
	return op.NewID(uint16(h.byte()%8), 100+h.last)
}

// tag returns an STag that the other side has lent, or any other one.
func (h *hostilePeer) tag() uint32 {
	if b := h.byte(); b < 240 {
		return h.someOp().tag
	}
	return uint32(h.byte()) << 8
}

// body fills in the body of a message of that type with correct values.
func (h *hostilePeer) body(t wire.Type, msg []byte, d knownOp) {
	be, length := binary.BigEndian, d.length
	region := anyOf(h, []uint64{readRegion, foreignRegion, writeRegion, 4})
	put := func(at int, v uint32) { be.PutUint32(msg[at:], v) }
	switch t {
	case wire.TypeOpenReq:
		msg[48] = byte(h.byte() & 7)
	case wire.TypeReadReq:
		put(36, anyOf(h, h.own))
		put(56, uint32(16*(h.byte()%4)))
		put(60, 1_000_000)
	case wire.TypeWriteReq:
		put(36, uint32(16*(h.byte()%4)))
		be.PutUint64(msg[40:], uint64(h.byte()%64))
		if h.suite == 0 {
			put(48, anyOf(h, h.own))
		}
	case wire.TypeRekeyReq:
		put(40, 2)
	case wire.TypePull:
		if h.suite != 0 {
			put(40, anyOf(h, h.own))
		}
		put(44, length)
		put(56, 500_000)
	case wire.TypeData:
		put(32, length)
	case wire.TypeReadDone:
		put(32, length)
		put(36, 1)
	case wire.TypeWriteDone:
		put(40, length)
		put(44, 1)
	case wire.TypeStatus:
		msg[25], msg[27] = byte(1+h.byte()%9), byte(h.byte()%5)
	default:
	}
	switch t {
	case wire.TypeOpenReq, wire.TypeOpenRep, wire.TypeReadReq, wire.TypeWriteReq, wire.TypeRekeyReq, wire.TypeRekeyDone:
		be.PutUint64(msg[24:], region)
		put(32, 1)
	default:
	}
	if t == wire.TypeOpenReq {
		copy(msg[32:], h.mine.Instance[:])
	}
}

// asksFor reports whether messages of a type are requests.
func asksFor(t wire.Type) bool {
	return t == wire.TypeOpenReq || t == wire.TypeReadReq || t == wire.TypeWriteReq || t == wire.TypeRekeyReq
}

// message makes a message with the right header and the right outer tag.
func (h *hostilePeer) message(t wire.Type, d knownOp) []byte {
	be := binary.BigEndian
	msg := make([]byte, t.Size())
	head := h.header(d.id)
	msg[0], msg[1], msg[2] = 1, byte(t), byte(h.byte()&1)
	be.PutUint16(msg[4:], uint16(len(msg)))
	be.PutUint64(msg[8:], head.Ctr)
	be.PutUint64(msg[16:], uint64(head.Op))
	h.body(t, msg, d)
	for b := h.byte(); b > 208; b -= 16 { // then other octets are changed
		at := 24 + h.byte()%(len(msg)-24)
		msg[at] = byte(h.byte())
	}
	if asksFor(t) && h.client {
		h.mu.Lock()
		h.learns(msg)
		if n := len(h.known); n > 0 && h.known[n-1].id == d.id {
			h.known[n-1].tag = 0 // it names a sink of the peer itself
		}
		h.mu.Unlock()
	}
	tag := len(msg) - regionkey.TagSize
	secret := tag
	switch t {
	case wire.TypeOpenRep:
		secret -= 96
	case wire.TypeRekeyReq:
		secret -= 48
	case wire.TypeReadReq, wire.TypeWriteReq:
		h.prove(t, msg[:tag-regionkey.TagSize], head.Ctr)
	default:
	}
	if h.out == nil {
		clear(msg[tag:])
		return msg
	}
	if t == wire.TypeRekeyReq {
		h.prove(t, msg[:tag-regionkey.TagSize], head.Ctr)
	}
	h.out.Seal(msg[:secret], msg[secret:tag], head.Ctr, msg[:secret])
	return msg
}

// prove writes the inner tag, with a key that the peer has, most of the time the right one.
func (h *hostilePeer) prove(t wire.Type, msg []byte, ctr uint64) {
	kind := map[wire.Type]int{wire.TypeReadReq: 1, wire.TypeWriteReq: 2, wire.TypeRekeyReq: 3}[t]
	region := binary.BigEndian.Uint64(msg[24:])
	if h.byte() > 200 {
		kind, region = 1+h.byte()%3, anyOf(h, []uint64{readRegion, writeRegion})
	}
	if s := h.sealers[region][kind]; s != nil {
		s.Tag(msg, ctr, msg)
	} else {
		clear(msg[len(msg) : len(msg)+regionkey.TagSize])
	}
}

// sendsAny sends a message, which may invalidate an STag: most of the time the one it should.
func (h *hostilePeer) sendsAny() {
	t := anyOf(h, h.usual)
	if b := h.byte(); b > 240 {
		t = wire.Type(1 + h.byte()%12)
	}
	d := h.someOp()
	if b := h.byte(); asksFor(t) && b < 250 || b > 250 {
		d = knownOp{id: h.newID()}
	}
	msg := h.message(t, d)
	copy(h.mem, msg)
	tag := uint32(0)
	if t == wire.TypeData || t == wire.TypeReadDone || t == wire.TypeStatus {
		tag = d.tag
	}
	switch b := h.byte(); {
	case b > 250:
		tag = h.tag()
	case b > 245:
		msg = msg[:h.byte()%len(msg)]
	}
	h.sendsWith(tag, len(msg))
}

// sendsWith sends the first octets of mem.
func (h *hostilePeer) sendsWith(tag uint32, n int) {
	if tag == 0 {
		_ = h.qp.Send(h.context(), h.mr.Slice(0, n))
	} else {
		_ = h.qp.SendInvalidate(h.context(), stag.STag(tag), h.mr.Slice(0, n))
	}
}

// completes acts like an honest peer: it writes a blob, and sends the message that invalidates the sink.
func (h *hostilePeer) completes() {
	d := h.someOp()
	if d.tag == 0 || d.length > 64 {
		return
	}
	a := regionkey.AAD{
		Op: regionkey.Read, Dir: regionkey.Responder, Suite: h.suite, Region: d.region, Epoch: 1, Length: d.length, Offset: d.off,
		OpID: uint64(d.id), DataCtr: h.dataCtr, Salt: d.salt,
	}
	if h.client {
		a.Op, a.Dir = regionkey.Write, regionkey.Initiator
	}
	h.dataCtr++
	blob := bytes.Repeat([]byte{theOctets}, int(d.length))
	if s := h.sealers[d.region][a.Op]; s != nil {
		blob = s.Seal(nil, blob, a.DataCtr, a.Append(nil))
	}
	copy(h.mem[8192:], blob)
	to := iwarp.RemoteBuffer{STag: stag.STag(d.tag), Len: uint32(len(blob))}
	_ = h.qp.RDMAWrite(h.context(), to, h.mr.Slice(8192, len(blob)))
	if h.client {
		m := wire.Data{DataCtr: a.DataCtr, Length: d.length}
		h.sendsWith(d.tag, copy(h.mem, m.Append(nil, h.header(d.id), h.out)))
	} else {
		m := wire.ReadDone{DataCtr: a.DataCtr, Length: d.length, Epoch: 1}
		h.sendsWith(d.tag, copy(h.mem, m.Append(nil, h.header(d.id), h.out)))
	}
}

// writesAny writes to a sink that was lent, or may have been.
func (h *hostilePeer) writesAny() {
	n := h.byte() % 80
	copy(h.mem[8192:], bytes.Repeat([]byte{theOctets}, n))
	to := iwarp.RemoteBuffer{STag: stag.STag(h.tag()), Len: 1 << 16}
	if h.byte() > 230 {
		to.TO = uint64(h.byte())
	}
	_ = h.qp.RDMAWrite(h.context(), to, h.mr.Slice(8192, n))
}

// acts performs one action.
func (h *hostilePeer) acts() {
	switch b := h.byte(); {
	case b < 130:
		h.sendsAny()
	case b < 210:
		h.completes()
	case b < 230:
		h.writesAny()
	case b < 245:
		time.Sleep(time.Duration(h.byte()) * 4 * time.Millisecond)
	}
	synctest.Wait()
}

// lends registers sinks of the peer.
func (h *hostilePeer) lends() {
	for range 2 {
		_, tag := h.sink(256)
		h.own = append(h.own, uint32(tag))
	}
}

func fuzzInput(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	in := make([]byte, 20+r.IntN(400))
	for i := range in {
		in[i] = byte(r.UintN(256))
	}
	return in
}

// hostileRuns tries many inputs.
func hostileRuns(t *testing.T, run func(*testing.T, []byte)) {
	t.Helper()
	for n := range tries(t, "IWARP_RMA_HOSTILE", 200) {
		run(t, fuzzInput(uint64(n)))
	}
}

func addInputs(f *testing.F) {
	f.Helper()
	for n := range uint64(4) {
		f.Add(fuzzInput(n))
	}
	f.Add([]byte{})
}
