package rdmap

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 7306 section 5.2: the messages of atomic operations.

// word is the integer at off of memory.
func word(mem []byte, off int) *uint64 { return (*uint64)(unsafe.Pointer(&mem[off])) }

// counter starts a conversation with a region of 64 octets, and returns its first
// integer, which is 100.
func counter(t *testing.T, change func(*Config)) (c *conversation, at RemoteAddr, value *uint64) {
	c = converse(t, change)
	r, mem := c.region(64, nil)
	value = word(mem, 0)
	*value = 100
	return c, RemoteAddr{r.STag(), 0x1000}, value
}

func add(at RemoteAddr, n uint64) AtomicRequest {
	return AtomicRequest{Op: FetchAdd, ID: 0xabcd0000 + uint32(n), At: at, Data: n}
}

func swapIf(at RemoteAddr, old, fresh uint64) AtomicRequest {
	return AtomicRequest{Op: CompareSwap, At: at, Data: fresh, Mask: math.MaxUint64, Compare: old, CompareMask: math.MaxUint64}
}

func TestEXT_2_3_4_23_25_26_28_AtomicRequestsOnTheWire(t *testing.T) {
	c := converse(t, nil)
	at := RemoteAddr{0x11223344, 0x5566778899aabbcc}
	c.post(
		atomicOf(1, AtomicRequest{Op: FetchAdd, ID: 77, At: at, Data: 0x0102030405060708, Mask: 0x8000000080000000, Compare: 9, CompareMask: 9}),
		atomicOf(2, AtomicRequest{Op: CompareSwap, At: at, Data: 1, Mask: 0xff, Compare: 0xfedcba9876543210, CompareMask: 0xfff}))
	c.wantSegment("a FetchAdd: 70 octets, QN 1; what is compared is zero and all ones", unhex(`
		41 4a 00000000 | 00000001 00000001 00000000
		00000000 | 00000001 | 11223344 | 5566778899aabbcc
		0102030405060708 | 8000000080000000 | 0000000000000000 | ffffffffffffffff`))
	c.wantSegment("a CmpSwap: the next number", unhex(`
		41 4a 00000000 | 00000001 00000002 00000000
		00000002 | 00000002 | 11223344 | 5566778899aabbcc
		0000000000000001 | 00000000000000ff | fedcba9876543210 | 0000000000000fff`))
	require.Equal(t, Traffic{Messages: 2, Octets: 104}, c.s.Stats().Out[OpAtomicRequest])
}

func TestEXT_2_3_4_34_35_50_51_AtomicResponsesOnTheWire(t *testing.T) {
	c, at, value := counter(t, nil)
	*value = 0x0102030405060708
	h := add(at, 1)
	h.ID = 0xdeadbeef
	c.sends("a FetchAdd", atomicRequestOf(1, h))
	c.wantSegment("30 octets, QN 3: the ID of the request, and the value before", unhex(`
		41 4b 00000000 | 00000003 00000001 00000000
		deadbeef | 0102030405060708`))
	require.Equal(t, []bool{true}, c.llp.staged, "copied, for the next response is made in the same place")
	require.Equal(t, uint64(0x0102030405060709), *value)
	require.Equal(t, Traffic{Messages: 1, Octets: 12}, c.s.Stats().Out[OpAtomicResponse])
	require.Equal(t, Traffic{Messages: 1, Octets: 52}, c.s.Stats().In[OpAtomicRequest])
}

func TestEXT_5_30_34_42_BothOperationsAreServed(t *testing.T) {
	c, at, value := counter(t, nil)
	c.receive(8)
	c.sends("a FetchAdd", atomicRequestOf(1, add(at, 5)))
	require.Empty(t, c.received, "the ULP is not told")
	c.wantSegment("the value before", atomicResponseOf(1, 0xabcd0005, 100))
	require.Equal(t, uint64(105), *value)
	c.sends("a CmpSwap that matches", atomicRequestOf(2, swapIf(at, 105, 7)))
	c.wantSegment("the value before", atomicResponseOf(2, 0, 105))
	require.Equal(t, uint64(7), *value)
	c.sends("a CmpSwap that does not", atomicRequestOf(3, swapIf(at, 105, 8)))
	c.wantSegment("the value before", atomicResponseOf(3, 0, 7))
	require.Equal(t, uint64(7), *value, "memory is as it was")
	require.Len(t, c.buffers, 1, "no receive was taken")
	require.Empty(t, c.received, "and nothing was delivered to the ULP")
}

func TestEXT_3_27_ReservedFieldsAreIgnored(t *testing.T) {
	c, at, value := counter(t, nil)
	segment := atomicRequestOf(1, add(at, 1))
	copy(segment[2:6], "\xff\xff\xff\xff")
	copy(segment[18:22], "\xff\xff\xff\xf0") // the lowest four bits are the operation
	c.sends("every reserved bit is set", segment)
	c.wantSegment("it is a FetchAdd", atomicResponseOf(1, 0xabcd0001, 100))
	require.Equal(t, uint64(101), *value)

	c.post(atomicOf(1, add(at, 1)))
	c.wantSegment("a request of this side", atomicRequestOf(1, AtomicRequest{Op: FetchAdd, ID: 1, At: at, Data: 1}))
	segment = atomicResponseOf(1, 1, 5)
	copy(segment[2:6], "\xff\xff\xff\xff")
	c.sends("and its response", segment)
	c.wantDone("likewise", "1 success")
}

func TestEXT_29_FetchAddComparesNothing(t *testing.T) {
	c, at, value := counter(t, nil)
	segment := atomicRequestOf(1, add(at, 1))
	copy(segment[18+36:], octets(16))
	c.sends("Compare Data and Mask are anything", segment)
	c.wantSegment("it is a FetchAdd", atomicResponseOf(1, 0xabcd0001, 100))
	require.Equal(t, uint64(101), *value)
}

func TestEXT_31_67_UnknownAtomicOperations(t *testing.T) {
	for op := range byte(16) {
		if AtomicOp(op) == FetchAdd || AtomicOp(op) == CompareSwap {
			continue
		}
		c, at, value := counter(t, nil)
		segment := patch(atomicRequestOf(1, add(at, 1)), 21, op)
		c.wantRefused("it is refused", segment, blaming(transport.RDMAPOpcode, segment))
		require.Equal(t, uint64(100), *value)
	}
}

func TestEXT_25_67_AtomicRequestOfAnotherLength(t *testing.T) {
	for n, code := range map[int]transport.Code{
		0: transport.RDMAPStreamCatastrophic, 28: transport.RDMAPStreamCatastrophic, 51: transport.RDMAPStreamCatastrophic,
		53: transport.DDPTooLong, 200: transport.DDPTooLong,
	} {
		c := converse(t, nil)
		segment := untagged(OpAtomicRequest, QNRequest, 1, octets(n))
		c.wantRefused("it is refused", segment, blaming(code, segment))
	}
	c, at, _ := counter(t, nil)
	h := ddp.UntaggedHeader{RsvdULP: OpAtomicRequest.control(), QN: QNRequest, MSN: 1}
	c.wantFault("a first segment of two", transport.RDMAPStreamCatastrophic, append(h.Append(nil), add(at, 1).Append(nil)[:20]...))
}

func TestEXT_24_36_52_AtomicsShareTheBuffersOfReads(t *testing.T) {
	c, at, _ := counter(t, func(cfg *Config) { cfg.IRD = 3 })
	c.sends("as many as the IRD", atomicRequestOf(1, add(at, 1)), readRequestOf(2, ReadRequest{}), atomicRequestOf(3, add(at, 2)))
	_, irq := c.s.Unfinished()
	require.Equal(t, 3, irq, "each has taken one buffer")
	c.wantSegment("in which it is until it is answered", atomicResponseOf(1, 0xabcd0001, 100))
	c.wantSegment("whatever", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	c.wantSegment("came after it", atomicResponseOf(2, 0xabcd0002, 101))
	c.sends("then the buffers are free again", readRequestOf(4, ReadRequest{}), atomicRequestOf(5, add(at, 1)), atomicRequestOf(6, add(at, 1)))
	c.wantFault("one more has none", transport.DDPMSNRange, atomicRequestOf(7, add(at, 1)))

	c = converse(t, func(cfg *Config) { cfg.IRD = 0 })
	c.wantFault("without an IRD there are none", transport.DDPMSNRange, atomicRequestOf(1, add(at, 1)))
}

func TestEXT_32_36_AtomicsShareTheORDWithReads(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.ORD = 2 })
	c.post(atomicOf(1, add(target, 1)), readOf(2, target), atomicOf(3, add(target, 3)), readOf(4, target), sendOf(5, ""))
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 2, "the third waits, and all after it")
	require.Equal(t, 2, c.s.Outstanding())
	c.llp.sent = nil
	c.sends("a response", atomicResponseOf(1, 1, 0))
	h := add(target, 3)
	h.ID = 3
	c.wantSegment("frees a slot", atomicRequestOf(3, h))
	c.wantIdle("one slot")
	c.sends("a Read Response", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	c.wantSegment("frees another", readRequestOf(4, ReadRequest{Src: target}))
	c.wantSegment("and the Send was waiting in its place", untagged(OpSend, QNSend, 1, ""))

	c = converse(t, nil)
	sink, _ := c.region(8, nil)
	c.post(readOf(1, target, span(sink, 0, 1)), atomicOf(2, add(target, 1)), readOf(3, target, span(sink, 1, 1)),
		sendOf(4, "s"), atomicOf(5, add(target, 1)))
	h.Data = 1
	c.wantSegment("in post order: a Read", asking(1, sink, 0))
	h.ID = 2
	c.wantSegment("an Atomic", atomicRequestOf(2, h))
	c.wantSegment("a Read", asking(3, sink, 1))
	c.wantSegment("a Send", untagged(OpSend, QNSend, 1, "s"))
	h.ID = 4
	c.wantSegment("and an Atomic", atomicRequestOf(4, h))
}

func TestEXT_36_ReadFenceWaitsForAtomics(t *testing.T) {
	c := converse(t, nil)
	c.post(atomicOf(1, add(target, 1)), sendOf(2, "").with(ReadFence))
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 1)
	c.llp.sent = nil
	c.sends("the response", atomicResponseOf(1, 1, 0))
	c.wantSegment("lifts the fence", untagged(OpSend, QNSend, 1, ""))
}

func TestEXT_53_54_57_63_ResponsesCompleteTheirRequests(t *testing.T) {
	c := converse(t, nil)
	c.post(atomicOf(1, add(target, 1)), sendOf(2, ""), atomicOf(3, swapIf(target, 1, 2)), atomicOf(4, add(target, 1)))
	require.NoError(t, c.flush())
	c.wantDone("nothing completes before the first response")
	c.sends("the first response", atomicResponseOf(1, 1, math.MaxUint64))
	c.wantDone("completes the first request, and what had waited behind it", "1 success", "2 success")
	c.sends("and so on", atomicResponseOf(2, 2, 20), atomicResponseOf(3, 3, 30))
	c.wantDone("one by one", "3 success", "4 success")
	require.Equal(t, []uint64{math.MaxUint64, 20, 30}, c.olds, "the ULP gets the values before")
	require.Equal(t, Traffic{Messages: 3, Octets: 36}, c.s.Stats().In[OpAtomicResponse])
	c.wantFault("no request awaits another one", transport.RDMAPStreamCatastrophic, atomicResponseOf(4, 4, 40))
}

func TestEXT_53_57_ResponsesOutOfOrder(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.Window = 8 })
	c.post(atomicOf(1, add(target, 1)), atomicOf(2, add(target, 1)), atomicOf(3, add(target, 1)))
	require.NoError(t, c.flush())
	require.NoError(t, c.s.Segment(2, atomicResponseOf(3, 3, 30)))
	require.NoError(t, c.s.Segment(1, atomicResponseOf(2, 2, 20)))
	c.s.BatchDone()
	c.wantDone("what comes early waits")
	require.NoError(t, c.s.Segment(0, atomicResponseOf(1, 1, 10)))
	c.s.BatchDone()
	c.wantDone("for its turn", "1 success", "2 success", "3 success")
	require.Equal(t, []uint64{10, 20, 30}, c.olds, "each was kept for the request with its number")
}

func TestEXT_51_55_67_InvalidResponses(t *testing.T) {
	good := atomicResponseOf(1, 1, 5)
	for what, bad := range map[string]struct {
		segment []byte
		code    transport.Code
		status  string
	}{
		"another ID":    {atomicResponseOf(1, 2, 5), transport.RDMAPStreamCatastrophic, "bad response 0207"},
		"empty":         {good[:18], transport.RDMAPStreamCatastrophic, "bad response 0207"},
		"11 octets":     {good[:29], transport.RDMAPStreamCatastrophic, "bad response 0207"},
		"13 octets":     {append(good[:30:30], 0), transport.DDPTooLong, "flushed"},
		"MSN 2":         {atomicResponseOf(2, 1, 5), transport.DDPMSNRange, "flushed"},
		"Read Response": {tagged(OpReadResponse, true, RemoteAddr{}, ""), transport.RDMAPOpcode, "flushed"},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			c.post(atomicOf(1, add(target, 1)))
			require.NoError(t, c.flush())
			c.llp.sent = nil
			c.wantRefused("it is refused", bad.segment, blaming(bad.code, bad.segment))
			c.s.End()
			c.wantDone("the request does not succeed", "1 "+bad.status)
			require.Empty(t, c.olds)
		})
	}
}

func TestEXT_55_67_ResponseOutOfTurn(t *testing.T) {
	c := converse(t, nil)
	segment := atomicResponseOf(1, 1, 5)
	c.wantRefused("nothing is outstanding", segment, blaming(transport.RDMAPStreamCatastrophic, segment))

	c = converse(t, nil)
	c.post(readOf(1, target), atomicOf(2, add(target, 1)))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	c.wantRefused("a Read Response is due", segment, blaming(transport.RDMAPOpcode, segment))

	e := newEcho()
	c = echoing(t, e)
	c.post(e.request(1, "x"), atomicOf(2, add(target, 1)))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	c.wantRefused("the response of an extension is due", segment, blaming(transport.RDMAPOpcode, segment))
}

func TestEXT_8_QueueThreeExistsWhereSomethingIsAsked(t *testing.T) {
	c := converse(t, func(cfg *Config) { cfg.ORD = 0 })
	segment := atomicResponseOf(1, 1, 5)
	c.wantRefused("with ORD 0 nothing can be asked for", segment, blaming(transport.DDPQueue, segment))
	c = converse(t, nil)
	c.post(atomicOf(1, add(target, 1)))
	require.NoError(t, c.flush())
	c.sends("else it is there", atomicResponseOf(1, 1, 5))
	c.wantDone("for Atomic Responses", "1 success")
}

func TestEXT_35_TheIDIsTheNumberOfTheMessage(t *testing.T) {
	c := converse(t, nil)
	for msn := range ddp.MSN(6) {
		h := add(target, 9)
		h.ID = 12345 // the poster's choice does not count
		c.post(atomicOf(1, h))
		h.ID = uint32(msn + 1)
		c.wantSegment("two that are under way never have the same", atomicRequestOf(msn+1, h))
		c.sends("and the responder echoes it", atomicResponseOf(msn+1, h.ID, 0))
	}
	require.Len(t, c.done, 6)
}

// TestEXT_43_HostOrderInMemoryAndBigEndianOnTheWire: each end converts, so that hosts of
// either order count together.
func TestEXT_43_HostOrderInMemoryAndBigEndianOnTheWire(t *testing.T) {
	c, at, value := counter(t, nil)
	*value = 0x0102030405060708
	ask := func(msn byte, op byte, operands string) []byte {
		h := untagged(OpAtomicRequest, QNRequest, ddp.MSN(msn), "")
		h = append(h, 0, 0, 0, op, 0, 0, 0, 5)
		return append(at.append(h), unhex(operands)...)
	}
	c.sends("0x10 is added", ask(1, 0, "0000000000000010 0000000000000000 0000000000000000 ffffffffffffffff"))
	c.wantSegment("the value before goes out with its highest octet first",
		untagged(OpAtomicResponse, QNResponse, 1, string(unhex("00000005 0102030405060708"))))
	require.Equal(t, uint64(0x0102030405060718), *value, "in memory it is an integer of the host")
	c.sends("the octets of a swap are in the same order",
		ask(2, 2, "a1a2a3a4a5a6a7a8 ffff00000000ffff 0102030405060718 ffffffffffffffff"))
	c.wantSegment("and so is its answer",
		untagged(OpAtomicResponse, QNResponse, 2, string(unhex("00000005 0102030405060718"))))
	require.Equal(t, uint64(0xa1a203040506a7a8), *value)

	c.post(atomicOf(9, add(at, 0x0102)))
	require.NoError(t, c.flush())
	require.Equal(t, unhex("0000000000000102"), c.llp.sent[0][18+20:18+28], "and what this side adds")
	c.sends("an answer", untagged(OpAtomicResponse, QNResponse, 1, string(unhex("00000001 0000000000abcdef"))))
	require.Equal(t, []uint64{0xabcdef}, c.olds)
}

func TestEXT_47_TOMayBeOdd(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(32, func(o *stag.Options) { o.BaseTO = 0x1003 })
	*word(mem, 16) = 1
	c.sends("an odd TO that is an aligned address", atomicRequestOf(1, add(RemoteAddr{r.STag(), 0x1013}, 1)))
	c.wantSegment("is served", atomicResponseOf(1, 0xabcd0001, 1))
	require.Equal(t, uint64(2), *word(mem, 16))
}

func TestAtomicOfABuffer(t *testing.T) {
	c := converse(t, nil)
	file := &lockedBuffer{mem: make([]byte, 64)}
	r, err := c.table.RegisterBuffer(file, stag.Options{Access: stag.LocalWrite | stag.RemoteAtomic, Scope: alice})
	require.NoError(t, err)
	binary.NativeEndian.PutUint64(file.mem[8:], 40)
	c.sends("a FetchAdd", atomicRequestOf(1, add(RemoteAddr{r.STag(), 8}, 2)))
	c.wantSegment("the value before", atomicResponseOf(1, 0xabcd0002, 40))
	require.Equal(t, uint64(42), binary.NativeEndian.Uint64(file.mem[8:]))

	broken, err := c.table.RegisterBuffer(&brokenBuffer{size: 64}, stag.Options{Access: stag.LocalWrite | stag.RemoteAtomic, Scope: alice})
	require.NoError(t, err)
	segment := atomicRequestOf(2, add(RemoteAddr{broken.STag(), 8}, 2))
	c.sends("a Buffer that cannot be read", segment)
	err = c.flush()
	require.ErrorIs(t, err, errBroken)
	require.True(t, c.s.Terminate(err))
	c.wantTerminate("ends the stream", blaming(transport.RDMAPStreamCatastrophic, segment))
	require.NoError(t, c.table.Invalidate(done(t), broken), "nothing is pinned")
}

func TestAtomicHeadersAreReadAndWritten(t *testing.T) {
	h := AtomicRequest{Op: CompareSwap, ID: 1, At: RemoteAddr{2, 3}, Data: 4, Mask: 5, Compare: 6, CompareMask: 7}
	got, err := ParseAtomicRequest(h.Append(nil))
	require.NoError(t, err)
	require.Equal(t, h, got)
	r := AtomicResponse{ID: 8, Old: 9}
	gotR, err := ParseAtomicResponse(r.Append(nil))
	require.NoError(t, err)
	require.Equal(t, r, gotR)
	for n := range 60 {
		b := make([]byte, n)
		_, err := ParseAtomicRequest(b)
		require.Equal(t, n == AtomicRequestLen, err == nil)
		_, err = ParseAtomicResponse(b)
		require.Equal(t, n == AtomicResponseLen, err == nil)
	}
}

func TestAtomicRequestMustBeWhole(t *testing.T) {
	c := converse(t, nil)
	_, err := c.tryPost(Request{Kind: KindAtomic, Inline: make([]byte, 51)})
	require.ErrorIs(t, err, ErrRequest)
}

// TestRefusedAtomicsPinNothing: nor do those that were done.
func TestRefusedAtomicsPinNothing(t *testing.T) {
	for what, off := range map[string]uint64{"one that is done": 0, "one that is not aligned": 4, "one that is out of bounds": 64} {
		c := converse(t, nil)
		r, _ := c.region(64, nil)
		err := c.send(atomicRequestOf(1, add(RemoteAddr{r.STag(), 0x1000 + off}, 1)))
		require.Equal(t, off == 0, err == nil, what)
		if off == 0 {
			require.NoError(t, c.flush())
		}
		require.NoError(t, c.table.Invalidate(done(t), r), what)
	}
}
