package rdmap

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/transport"
)

// The hook is proven by an operation that exists here only: opEcho asks for its own
// octets back, in an opcode that is reserved for experiments.
const (
	opEcho   Opcode = 0xf
	opEchoed Opcode = 0xe
)

// An echo serves echo requests when the test says so.
type echo struct {
	Extension
	open []*Inbound
}

func newEcho() *echo {
	e := &echo{Extension: Extension{Request: opEcho, Response: opEchoed, MaxRequest: 40, MaxResponse: 40}}
	e.Serve = func(in *Inbound) { e.open = append(e.open, in) }
	return e
}

// reply answers the i-th open request.
func (e *echo) reply(i int) {
	in := e.open[i]
	e.open = slices.Delete(e.open, i, i+1)
	in.Reply(in.Payload())
}

func echoing(t *testing.T, e *echo) *conversation {
	return converse(t, func(cfg *Config) { cfg.Extensions = []*Extension{&e.Extension} })
}

func (e *echo) request(id uint64, payload string) Request {
	return Request{ID: id, Kind: KindExtension, Ext: &e.Extension, Inline: []byte(payload)}
}

func TestExtensionRequester(t *testing.T) {
	e := newEcho()
	c := echoing(t, e)
	c.post(e.request(1, "one"), readOf(2, target), e.request(3, "two"), sendOf(4, ""))
	c.wantSegment("a request shares QN 1", untagged(opEcho, QNRequest, 1, "one"))
	c.wantSegment("and its numbers with Reads", readRequestOf(2, ReadRequest{Src: target}))
	c.wantSegment("a request", untagged(opEcho, QNRequest, 3, "two"))
	c.sends("the responses have QN 3 and its numbers",
		untagged(opEchoed, QNResponse, 1, "eno"), tagged(OpReadResponse, true, RemoteAddr{}, ""), untagged(opEchoed, QNResponse, 2, ""))
	c.wantDone("all complete", "1 success", "2 success", "3 success", "4 success")
	require.Equal(t, []string{"eno", ""}, c.replies)
}

func TestExtensionSharesTheORD(t *testing.T) {
	e := newEcho()
	c := converse(t, func(cfg *Config) { cfg.Extensions, cfg.ORD = []*Extension{&e.Extension}, 2 })
	c.post(e.request(1, "1"), readOf(2, target), e.request(3, "3"), sendOf(4, "fenced").with(ReadFence))
	require.NoError(t, c.flush())
	require.Len(t, c.llp.sent, 2, "the third waits")
	require.Equal(t, 2, c.s.Outstanding())
	c.llp.sent = nil
	c.sends("a response", untagged(opEchoed, QNResponse, 1, "1"))
	c.wantSegment("frees a slot", untagged(opEcho, QNRequest, 3, "3"))
	c.wantIdle("a Read Fence waits for extensions too")
	c.sends("until all have come", tagged(OpReadResponse, true, RemoteAddr{}, ""), untagged(opEchoed, QNResponse, 2, "3"))
	c.wantSegment("then it falls", untagged(OpSend, QNSend, 1, "fenced"))
}

func TestExtensionResponderKeepsTheOrder(t *testing.T) {
	e := newEcho()
	c := echoing(t, e)
	c.sends("requests of both kinds",
		untagged(opEcho, QNRequest, 1, "one"), readRequestOf(2, ReadRequest{Sink: target}), untagged(opEcho, QNRequest, 3, "two"),
		untagged(opEcho, QNRequest, 4, "three"))
	require.Len(t, e.open, 3, "each is served when it is delivered")
	c.wantIdle("the oldest has no answer: nothing leaves, also not the Read Response")
	e.reply(1)
	require.Zero(t, c.kicks)
	c.wantIdle("an answer out of order waits")
	e.reply(0)
	require.Equal(t, 1, c.kicks, "the oldest answer asks to be sent")
	c.wantSegment("now they leave in the order of the requests", untagged(opEchoed, QNResponse, 1, "one"))
	c.wantSegment("Read Responses among them", tagged(OpReadResponse, true, target, ""))
	c.wantSegment("with numbers of their own", untagged(opEchoed, QNResponse, 2, "two"))
	c.wantIdle("up to the one without an answer")
	_, irq := c.s.Unfinished()
	require.Equal(t, 1, irq)
	e.reply(0)
	c.wantSegment("at last", untagged(opEchoed, QNResponse, 3, "three"))
}

func TestExtensionSharesTheIRD(t *testing.T) {
	e := newEcho()
	c := converse(t, func(cfg *Config) { cfg.Extensions, cfg.IRD = []*Extension{&e.Extension}, 2 })
	c.sends("as many as the IRD", readRequestOf(1, ReadRequest{}), untagged(opEcho, QNRequest, 2, "x"))
	c.wantFault("one more", transport.DDPMSNRange, untagged(opEcho, QNRequest, 3, "y"))
}

func TestExtensionAnswersAtOnce(t *testing.T) {
	e := newEcho()
	e.Serve = func(in *Inbound) { in.Reply(append(in.Payload(), '!')) }
	c := echoing(t, e)
	for i := range 20 {
		c.sends("a request", untagged(opEcho, QNRequest, ddp.MSN(i+1), "hi"))
		c.wantSegment("and its response", untagged(opEchoed, QNResponse, ddp.MSN(i+1), "hi!"))
	}
}

// TestExtensionMayUseItsReplyAgain: a response that waits for its turn is a copy.
func TestExtensionMayUseItsReplyAgain(t *testing.T) {
	e := newEcho()
	reply := []byte("0")
	e.Serve = func(in *Inbound) {
		reply[0]++
		in.Reply(reply)
	}
	c := echoing(t, e)
	c.sends("two requests", untagged(opEcho, QNRequest, 1, "a"), untagged(opEcho, QNRequest, 2, "b"))
	c.wantSegment("the first", untagged(opEchoed, QNResponse, 1, "1"))
	c.wantSegment("the second", untagged(opEchoed, QNResponse, 2, "2"))
}

func TestExtensionFails(t *testing.T) {
	e := newEcho()
	c := echoing(t, e)
	segment := untagged(opEcho, QNRequest, 2, "bad")
	c.sends("requests", untagged(opEcho, QNRequest, 1, "good"), segment)
	e.open[1].Fail(transport.Faultf(transport.RDMAPOpcode, "no such operation"))
	c.wantIdle("a fault waits for its turn")
	e.reply(0)
	err := c.flush()
	require.Error(t, err)
	require.True(t, c.s.Terminate(err))
	c.wantSegment("earlier requests are answered", untagged(opEchoed, QNResponse, 1, "good"))
	c.wantTerminate("then it is reported against its request, without an RDMA header", blaming(transport.RDMAPOpcode, segment))
}

func TestExtensionAnswersTooMuch(t *testing.T) {
	e := newEcho()
	e.Serve = func(in *Inbound) { in.Reply(make([]byte, 41)) }
	c := echoing(t, e)
	segment := untagged(opEcho, QNRequest, 1, "x")
	c.wantRefused("nothing of it is sent", segment, blaming(transport.RDMAPStreamCatastrophic, segment))
}

func TestExtensionMessagesOfWrongLength(t *testing.T) {
	e := newEcho()
	c := echoing(t, e)
	c.sends("a request of the greatest length", untagged(opEcho, QNRequest, 1, octets(40)))
	c.wantFault("an octet more", transport.DDPTooLong, untagged(opEcho, QNRequest, 2, octets(41)))
	for mo, code := range map[uint32]transport.Code{40: transport.DDPTooLong, 41: transport.DDPOffset, 1 << 31: transport.DDPOffset} {
		c = echoing(t, e)
		h := ddp.UntaggedHeader{Last: true, RsvdULP: opEcho.control(), QN: QNRequest, MSN: 1, MO: mo}
		c.wantFault(fmt.Sprintf("an octet at MO %d", mo), code, append(h.Append(nil), 'x'))
	}
	c = echoing(t, e)
	c.wantFault("a Read Request keeps its own length", transport.DDPTooLong, untagged(OpReadRequest, QNRequest, 1, octets(29)))
	c = echoing(t, e)
	c.post(e.request(1, "x"))
	require.NoError(t, c.flush())
	c.wantFault("a response that is too long", transport.DDPTooLong, untagged(opEchoed, QNResponse, 1, octets(41)))
}

func TestExtensionRequestOfSeveralSegments(t *testing.T) {
	e := newEcho()
	c := echoing(t, e)
	h := ddp.UntaggedHeader{RsvdULP: opEcho.control(), QN: QNRequest, MSN: 1}
	c.sends("the first part", append(h.Append(nil), "first "...))
	h.MO, h.Last = 6, true
	c.sends("the second part", append(h.Append(nil), "second"...))
	e.reply(0)
	c.wantSegment("make one request", untagged(opEchoed, QNResponse, 1, "first second"))
}

func TestExtensionResponseOutOfTurn(t *testing.T) {
	e := newEcho()
	c := echoing(t, e)
	c.wantFault("nothing is outstanding", transport.RDMAPStreamCatastrophic, untagged(opEchoed, QNResponse, 1, "x"))
	c = echoing(t, e)
	c.post(readOf(1, target), e.request(2, "x"))
	require.NoError(t, c.flush())
	c.wantFault("a Read Response is due", transport.RDMAPOpcode, untagged(opEchoed, QNResponse, 1, "x"))
	c = echoing(t, e)
	c.post(e.request(1, "x"), readOf(2, target))
	require.NoError(t, c.flush())
	c.wantFault("the extension's response is due", transport.RDMAPOpcode, tagged(OpReadResponse, true, RemoteAddr{}, ""))
}

// TestExtensionOpcodesBelongToTheirQueues: an extension opens QN 1 and QN 3 for its own opcodes alone.
func TestExtensionOpcodesBelongToTheirQueues(t *testing.T) {
	for what, segment := range map[string][]byte{
		"the response on QN 0":   untagged(opEchoed, QNSend, 1, "x"),
		"the response on QN 1":   untagged(opEchoed, QNRequest, 1, "x"),
		"the response on QN 2":   untagged(opEchoed, QNTerminate, 1, "x"),
		"the request on QN 0":    untagged(opEcho, QNSend, 1, "x"),
		"the request on QN 2":    untagged(opEcho, QNTerminate, 1, "x"),
		"the request on QN 3":    untagged(opEcho, QNResponse, 1, "x"),
		"another opcode on QN 1": untagged(0xd, QNRequest, 1, "x"),
		"another opcode on QN 3": untagged(0xd, QNResponse, 1, "x"),
		"a Send on QN 1":         untagged(OpSend, QNRequest, 1, "x"),
		"the request, tagged":    tagged(opEcho, true, target, "x"),
		"the response, tagged":   tagged(opEchoed, true, target, "x"),
	} {
		t.Run(what, func(t *testing.T) {
			e := newEcho()
			c := echoing(t, e)
			mem := c.receive(64)
			c.post(e.request(1, "x"))
			require.NoError(t, c.flush())
			c.llp.sent = nil
			c.wantRefused("it is unexpected", segment, blaming(transport.RDMAPOpcode, segment))
			require.Equal(t, make([]byte, 64), mem, "nothing was placed")
			require.Empty(t, e.open, "nothing was served")
		})
	}
}

func TestExtensionRefusesAResponse(t *testing.T) {
	e := newEcho()
	e.Accept = func(r *Request) error {
		if string(r.Reply) != string(r.Inline) {
			return errors.New("that is no echo")
		}
		return nil
	}
	c := echoing(t, e)
	c.post(e.request(1, "x"), e.request(2, "y"))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	c.sends("a response that is accepted", untagged(opEchoed, QNResponse, 1, "x"))
	segment := untagged(opEchoed, QNResponse, 2, "z")
	c.wantRefused("one that is not", segment, blaming(transport.RDMAPStreamCatastrophic, segment))
	c.s.End()
	c.wantDone("the request tells", "1 success", "2 bad response 0207")
}

func TestExtensionIsNotServed(t *testing.T) {
	e := newEcho()
	e.Serve = nil
	c := echoing(t, e)
	segment := untagged(opEcho, QNRequest, 1, "x")
	c.wantRefused("a requester only", segment, blaming(transport.RDMAPOpcode, segment))
}

func TestExtensionAnswersAfterTheEnd(t *testing.T) {
	e := newEcho()
	c := echoing(t, e)
	c.sends("a request", untagged(opEcho, QNRequest, 1, "x"))
	c.post(e.request(7, "y"))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	c.sends("the peer ends the stream", terminateOf(bare(transport.MPACRC)))
	c.s.End()
	e.reply(0)
	require.Zero(t, c.kicks)
	c.wantIdle("a late answer does nothing")
	c.wantDone("and our own request is flushed", "7 flushed")
}

func TestExtensionOutOfOrder(t *testing.T) {
	e := newEcho()
	c := converse(t, func(cfg *Config) { cfg.Extensions, cfg.Window = []*Extension{&e.Extension}, 8 })
	c.post(e.request(1, "x"), e.request(2, "y"))
	require.NoError(t, c.flush())
	require.NoError(t, c.take(1, untagged(opEchoed, QNResponse, 2, "second")))
	require.Empty(t, c.done)
	require.NoError(t, c.take(0, untagged(opEchoed, QNResponse, 1, "first")))
	c.wantDone("responses that overtake each other complete in order", "1 success", "2 success")
	require.Equal(t, []string{"first", "second"}, c.replies)
}

// A request that comes while the sending goroutine has another served does not overtake
// it.
func TestExtensionIsCalledOneAtATime(t *testing.T) {
	e := newEcho()
	c, at, _ := counter(t, func(cfg *Config) { cfg.Extensions = []*Extension{&e.Extension} })
	var calls []string
	e.Serve = func(in *Inbound) {
		what := string(in.Payload())
		calls = append(calls, what+" begins")
		if what == "first" {
			c.sends("another request", untagged(opEcho, QNRequest, 3, "second"))
		}
		in.Reply([]byte(what))
		calls = append(calls, what+" ends")
	}
	c.sends("an Atomic, and a request after it", atomicRequestOf(1, add(at, 1)), untagged(opEcho, QNRequest, 2, "first"))
	require.Empty(t, calls, "which waits until the Atomic is answered")
	c.wantSegment("the Atomic", atomicResponseOf(1, 0xabcd0001, 100))
	require.Equal(t, []string{"first begins", "first ends", "second begins", "second ends"}, calls)
	c.wantSegment("the first", untagged(opEchoed, QNResponse, 2, "first"))
	c.wantSegment("the second", untagged(opEchoed, QNResponse, 3, "second"))
}
