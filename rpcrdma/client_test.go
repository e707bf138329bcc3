package rpcrdma

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// A pair is a Client, and the server's end of its connection.
type pair struct {
	testing.TB
	client *Client
	conn   *Conn
}

// call makes a Client that is connected to a Conn.
func (h *host) call(cfg *ClientConfig) *pair {
	h.Helper()
	accepted := h.accepts()
	c, err := Dial(within(h.TB), h.client, h.l.Addr().Network(), h.l.Addr().String(), cfg)
	require.NoError(h, err)
	p := &pair{TB: h.TB, client: c, conn: <-accepted}
	require.NotNil(h, p.conn)
	h.Cleanup(func() {
		_ = c.qp.Abort()
		<-c.Done()
		<-p.conn.Done()
	})
	return p
}

// serves answers each call in a goroutine of its own, with what f returns, until the connection ends.
func (p *pair) serves(f func(call []byte) (reply []byte)) {
	go func() {
		for {
			k, err := p.conn.ReadCall(context.Background())
			if err != nil {
				return
			}
			go func() { _ = k.Reply(context.Background(), f(slices.Clone(k.Message()))) }()
		}
	}()
}

func (p *pair) do(r *Request) Reply {
	p.Helper()
	reply, err := p.client.Do(within(p.TB), r)
	require.NoError(p, err)
	return reply
}

// xidOfCall returns the XID of a well-formed call.
func xidOfCall(call []byte) uint32 { return binary.BigEndian.Uint32(call) }

// served returns how many RDMA Reads the Client has served.
func served(p *pair) uint64 { return p.client.QP().Stats().Received.ReadRequest.Messages }

// TestRPR_22_ArgumentsOfEveryLength: a call reaches the server unchanged, whatever part of it is inline.
func TestRPR_22_ArgumentsOfEveryLength(t *testing.T) {
	for _, inline := range []int{1024, 4096} {
		bubble(t, func(t *testing.T) {
			p := newHost(t, "pipe", Config{Inline: inline}).call(nil)
			var got []byte
			p.serves(func(call []byte) []byte {
				got = call
				return accepted(xidOfCall(call))
			})
			edge := inline - wire.MinLen - wire.CallLen - 4 - 8 // of what is inline
			for xid, n := range []int{0, 1, 3, 4, edge, edge + 1, edge + 4, 5001, 70000, 1 << 20} {
				data, tail := octets(3, n), octets(9, 8)
				head := rpc(uint32(xid), 7, opaque(data)[:4]...)
				whole := slices.Concat(rpc(uint32(xid), 7, opaque(data)...), tail)
				require.Equal(t, accepted(uint32(xid)), p.do(&Request{Head: head, Data: data, Tail: tail}).Message)
				require.Equal(t, whole, got, "%d octets that may go by a chunk", n)
				reads := served(p)
				p.do(&Request{Head: whole})
				require.Equal(t, whole, got, "the same in a call of which nothing is eligible")
				if n == edge {
					require.Equal(t, reads, served(p), "it fits")
				}
			}
		})
	}
}

// TestRPR_22_ResultsOfEveryLength: the opaque of a reply is written to the memory for it, and no octet behind it.
func TestRPR_22_ResultsOfEveryLength(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{}).call(nil)
		for _, n := range []int{0, 1, 2, 3, 4, 4095, 7003, 1 << 20} {
			p := p
			data := octets(1, n)
			go func() {
				k, err := p.conn.ReadCall(context.Background())
				if err == nil {
					_ = k.Reply(context.Background(), readReply(xidOfCall(k.Message()), data))
				}
			}()
			memory := bytes.Repeat([]byte{0xee}, n+10)
			reply := p.do(&Request{Head: rpc(7, procRead), Result: memory[: n+5 : n+5], MaxReply: 200})
			require.Equal(t, n, reply.Result)
			require.Equal(t, data, memory[:n])
			require.Equal(t, bytes.Repeat([]byte{0xee}, 10), memory[n:], "neither a pad nor anything else")
			require.Equal(t, readReply(7, data)[:24+20], reply.Message, "the length stays")
		}
	})
}

// TestRPR_22_LongReplies: a reply that does not fit into a message comes by the Reply chunk, into the caller's memory if there is
// enough.
func TestRPR_22_LongReplies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{}).call(nil)
		p.serves(func(call []byte) []byte {
			n := binary.BigEndian.Uint32(call[wire.CallLen:])
			return append(accepted(xidOfCall(call)), octets(5, int(n))...)
		})
		ask := func(n int) []byte { return rpc(9, 16, binary.BigEndian.AppendUint32(nil, uint32(n))...) }
		for _, n := range []int{4, 4000, 4096 - wire.MinLen - 24, 4096 - wire.MinLen - 24 + 4, 100_000} {
			want := append(accepted(9), octets(5, n)...)
			require.Equal(t, want, p.do(&Request{Head: ask(n), MaxReply: 1 << 20}).Message)
			require.Equal(t, want, p.do(&Request{Head: ask(n), MaxReply: len(want)}).Message, "not one octet too many")
			buf := make([]byte, 0, len(want))
			msg := p.do(&Request{Head: ask(n), MaxReply: len(want), Buf: buf}).Message
			require.Equal(t, want, msg)
			require.Same(t, &buf[:1][0], &msg[0], "the memory of the caller")
		}
		_, err := p.client.Do(within(t), &Request{Head: ask(5000), MaxReply: 5000})
		require.ErrorIs(t, err, ErrChunk, "24 octets too few")
		_, err = p.client.Do(within(t), &Request{Head: ask(5000)})
		require.ErrorIs(t, err, ErrChunk, "no memory at all")
		p.do(&Request{Head: ask(4)})
	})
}

// TestRPR_22_Credits: one call until the server has granted more, and never more than it has granted.
func TestRPR_22_Credits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{Credits: 4}).call(&ClientConfig{Credits: 16})
		const calls = 40
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() { p.do(&Request{Head: rpc(uint32(100+i), 0)}) })
		}
		most := 1
		for answeredCalls := 0; answeredCalls < calls; most = min(4, calls-answeredCalls) {
			synctest.Wait()
			var hand []*Call
			for range most {
				k, err := p.conn.ReadCall(t.Context())
				require.NoError(t, err)
				hand = append(hand, k)
			}
			synctest.Wait()
			require.Empty(t, p.conn.ready, "no more than %d are under way", most)
			for _, k := range hand {
				require.NoError(t, k.Reply(t.Context(), accepted(xidOfCall(k.Message()))))
			}
			answeredCalls += len(hand)
		}
		all.Wait()
	})
}

// TestRPR_22_ManyCalls: calls of all kinds from many goroutines get their own replies.
func TestRPR_22_ManyCalls(t *testing.T) {
	for _, network := range []string{"pipe", "tcp"} {
		t.Run(network, func(t *testing.T) {
			p := newHost(t, network, Config{}).call(nil)
			p.serves(func(call []byte) []byte { return readReply(xidOfCall(call), call[wire.CallLen+4:]) })
			var all sync.WaitGroup
			for g := range 8 {
				all.Go(func() {
					for i := range 50 {
						xid := uint32(g<<16 | i)
						data := octets(byte(g+i), 4+4*(i*i*i%9000))
						r := &Request{Head: rpc(xid, procRead, opaque(data)[:4]...), Data: data, Result: make([]byte, len(data)), MaxReply: 128}
						reply, err := p.client.Do(t.Context(), r)
						if err != nil || reply.Result != len(data) || !bytes.Equal(data, r.Result) || xidOfCall(reply.Message) != xid {
							t.Errorf("call %#x: %v, %d octets", xid, err, reply.Result)
							return
						}
					}
				})
			}
			all.Wait()
			require.NoError(t, p.client.Close())
			require.NoError(t, p.client.Err())
		})
	}
}

// TestRPR_22_Canceled: a call that was given up keeps its credit until its reply, and its memory belongs to the caller again.
func TestRPR_22_Canceled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{Credits: 1}).call(nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		_, err := p.client.Do(ctx, &Request{Head: rpc(1, 0)})
		require.ErrorIs(t, err, context.Canceled)
		_, err = p.client.Do(ctx, &Request{Head: rpc(2, 0)})
		require.ErrorIs(t, err, context.Canceled, "it is not sent")
		first, err := p.conn.ReadCall(t.Context())
		require.NoError(t, err)

		waits, give := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			give()
		}()
		_, err = p.client.Do(waits, &Request{Head: rpc(3, 0)})
		require.ErrorIs(t, err, context.Canceled, "the only credit is in use")
		require.NoError(t, first.Reply(t.Context(), accepted(1)))
		p.serves(func(call []byte) []byte { return accepted(xidOfCall(call)) })
		require.Equal(t, accepted(1), p.do(&Request{Head: rpc(1, 0)}).Message, "the XID is free again")
	})
}

// TestRPR_22_CanceledMemory: a Write of the server after a call was given up ends the connection, and changes nothing.
func TestRPR_22_CanceledMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{}).call(nil)
		ctx, cancel := context.WithCancel(t.Context())
		memory := make([]byte, 100)
		failed := make(chan error)
		go func() {
			_, err := p.client.Do(ctx, &Request{Head: rpc(1, procRead), Result: memory})
			failed <- err
		}()
		k, err := p.conn.ReadCall(t.Context())
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		_ = k.Reply(t.Context(), readReply(1, octets(1, 100)))
		<-p.client.Done()
		require.Error(t, p.client.Err())
		require.Equal(t, make([]byte, 100), memory)
		_, err = p.client.Do(t.Context(), &Request{Head: rpc(2, 0)})
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestRPR_22_End: outstanding calls, and those that wait, fail when the connection ends.
func TestRPR_22_End(t *testing.T) {
	for name, end := range map[string]func(p *pair){
		"the server ends it":   func(p *pair) { go func() { _ = p.conn.Close() }() },
		"the server is gone":   func(p *pair) { _ = p.conn.qp.Abort() },
		"the client ends it":   func(p *pair) { go func() { _ = p.client.Close() }() },
		"the server breaks it": func(p *pair) { _ = p.conn.qp.Terminate() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := newHost(t, "pipe", Config{}).call(nil)
				errs := make(chan error)
				for i := range 3 { // one is outstanding, two wait for their turn
					go func() {
						_, err := p.client.Do(t.Context(), &Request{Head: rpc(uint32(i), procRead), Result: make([]byte, 10)})
						errs <- err
					}()
				}
				synctest.Wait()
				end(p)
				for range 3 {
					require.ErrorIs(t, <-errs, net.ErrClosed)
				}
				<-p.client.Done()
			})
		})
	}
}

// TestRPR_22_NoSense: malformed replies fail their call, and only that.
func TestRPR_22_NoSense(t *testing.T) {
	handle := func(h *wire.Header) *wire.Header {
		h.Writes[0][0].Handle++
		return h
	}
	for name, c := range map[string]struct {
		answer func(h *wire.Header) [][]byte // to the header of the call
		err    error
	}{
		"no space":           {func(h *wire.Header) [][]byte { return [][]byte{wire.AppendChunkFailure(nil, h.XID, 32)} }, ErrChunk},
		"version":            {func(h *wire.Header) [][]byte { return [][]byte{wire.AppendVersionFailure(nil, h.XID, 1, 32)} }, ErrVersion},
		"version of its own": {func(h *wire.Header) [][]byte { return [][]byte{wire.AppendVersionFailure(nil, h.XID, 2, 32)} }, ErrVersion},
		"failure of a kind that is not known": {func(h *wire.Header) [][]byte {
			b := wire.AppendChunkFailure(nil, h.XID, 32)
			b[len(b)-1] = 9
			return [][]byte{b}
		}, ErrMalformed},
		"failure cut short": {func(h *wire.Header) [][]byte { return [][]byte{wire.AppendChunkFailure(nil, h.XID, 32)[:16]} }, ErrMalformed},
		"another version": {func(h *wire.Header) [][]byte {
			b := h.Append(nil)
			b[7] = 2
			return [][]byte{b, accepted(h.XID)}
		}, ErrMalformed},
		"RDMA_DONE": {func(h *wire.Header) [][]byte {
			h.Proc = wire.Done
			return [][]byte{h.Append(nil)[:16], accepted(h.XID)}
		}, ErrMalformed},
		"header cut short": {func(h *wire.Header) [][]byte { return [][]byte{h.Append(nil)[:20]} }, ErrMalformed},
		"another XID":      {func(h *wire.Header) [][]byte { return [][]byte{h.Append(nil), accepted(h.XID + 1)} }, ErrMalformed},
		"a call":           {func(h *wire.Header) [][]byte { return [][]byte{h.Append(nil), rpc(h.XID, 0)} }, ErrMalformed},
		"no message":       {func(h *wire.Header) [][]byte { return [][]byte{h.Append(nil)} }, ErrMalformed},
		"a Read list": {func(h *wire.Header) [][]byte {
			h.Reads = []wire.ReadSegment{{Segment: h.Writes[0][0]}}
			return [][]byte{h.Append(nil), accepted(h.XID)}
		}, ErrMalformed},
		"another handle": {func(h *wire.Header) [][]byte { return [][]byte{handle(h).Append(nil), accepted(h.XID)} }, ErrMalformed},
		"another offset": {func(h *wire.Header) [][]byte {
			h.Writes[0][0].Offset++
			return [][]byte{h.Append(nil), accepted(h.XID)}
		}, ErrMalformed},
		"more than there is": {func(h *wire.Header) [][]byte {
			h.Writes[0][0].Length++
			return [][]byte{h.Append(nil), accepted(h.XID)}
		}, ErrMalformed},
		"a Write chunk more": {func(h *wire.Header) [][]byte {
			h.Writes = append(h.Writes, h.Writes[0])
			return [][]byte{h.Append(nil), accepted(h.XID)}
		}, ErrMalformed},
		"a Reply chunk that the call has not named": {func(h *wire.Header) [][]byte {
			h.Proc, h.Reply, h.HasReply = wire.NoMsg, h.Writes[0], true
			return [][]byte{h.Append(nil)}
		}, ErrMalformed},
		"nothing inline, and no Reply chunk": {func(h *wire.Header) [][]byte {
			h.Proc = wire.NoMsg
			return [][]byte{h.Append(nil)}
		}, ErrMalformed},
		"no Write list": {func(h *wire.Header) [][]byte {
			h.Writes = nil
			return [][]byte{h.Append(nil), accepted(h.XID)}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newScripted(t)
				go func() {
					h := s.recv()
					h.Credits = 32
					s.send(c.answer(h)...)
					h = s.recv()
					s.send(h.Append(nil), accepted(h.XID))
				}()
				reply, err := s.client.Do(t.Context(), &Request{Head: rpc(5, procRead), Result: make([]byte, 100)})
				require.ErrorIs(t, err, c.err)
				if c.err == nil {
					require.Equal(t, Reply{Message: accepted(5)}, reply)
				}
				reply, err = s.client.Do(t.Context(), &Request{Head: rpc(5, 0)})
				require.NoError(t, err, "the connection goes on")
				require.Equal(t, accepted(5), reply.Message)
			})
		})
	}
}

// TestRPR_22_Strays: messages that are not replies do no harm, nor does one that is too short for a header.
func TestRPR_22_Strays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newScripted(t)
		go func() {
			h := s.recv()
			h.Credits = 0
			s.send(h.Append(nil), accepted(h.XID))
			for i := range 100 { // more than there are receives
				stray := wire.Header{XID: h.XID + 1 + uint32(i), Credits: 1000}
				s.send(stray.Append(nil), accepted(stray.XID))
			}
			h = s.recv()
			s.send(make([]byte, 15))
			synctest.Wait()
			h.Credits = 1
			s.send(h.Append(nil), accepted(h.XID))
		}()
		_, err := s.client.Do(t.Context(), &Request{Head: rpc(5, 0)})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, s.client.grant, "a grant of 0 is one of 1, and strays grant nothing")
		_, err = s.client.Do(t.Context(), &Request{Head: rpc(6, 0)})
		require.NoError(t, err)
	})
}

// TestRPR_22_BadRequests: a Request that is no call is refused before anything is sent.
func TestRPR_22_BadRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newHost(t, "pipe", Config{}).call(nil)
		for name, r := range map[string]*Request{
			"no call":           {Head: accepted(1)},
			"too short":         {Head: rpc(1, 0)[:36]},
			"odd head":          {Head: append(rpc(1, 0), 0)},
			"odd tail":          {Head: rpc(1, 0), Tail: make([]byte, 5)},
			"another length":    {Head: rpc(1, 7, 0, 0, 0, 5), Data: make([]byte, 6)},
			"a negative answer": {Head: rpc(1, 0), MaxReply: -1},
		} {
			_, err := p.client.Do(t.Context(), r)
			require.Error(t, err, name)
			require.NotErrorIs(t, err, net.ErrClosed)
		}
		p.serves(func(call []byte) []byte { return accepted(xidOfCall(call)) })
		p.do(&Request{Head: rpc(1, 0)})
		require.EqualValues(t, 1, p.client.QP().Stats().Sent.Send.Messages, "of them nothing was sent")
	})
}

// TestRPR_22_SameXID: a second call with the XID of one that has no reply fails, and the first one does not.
func TestRPR_22_SameXID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newScripted(t)
		tried := make(chan struct{})
		go func() {
			h := s.recv()
			h.Credits = 32
			s.send(h.Append(nil), accepted(h.XID))
			h = s.recv()
			<-tried
			s.send(h.Append(nil), accepted(h.XID))
		}()
		_, err := s.client.Do(t.Context(), &Request{Head: rpc(1, 0)})
		require.NoError(t, err)
		first := make(chan error)
		go func() {
			_, err := s.client.Do(t.Context(), &Request{Head: rpc(2, 0)})
			first <- err
		}()
		synctest.Wait()
		_, err = s.client.Do(t.Context(), &Request{Head: rpc(2, 0)})
		require.ErrorIs(t, err, errSameXID)
		close(tried)
		require.NoError(t, <-first)
	})
}

// TestRPR_22_Options: errors name the options that are wrong.
func TestRPR_22_Options(t *testing.T) {
	rnic := open(t)
	for want, cfg := range map[string]*ClientConfig{
		"ClientConfig.Credits is 1025":    {Credits: 1025},
		"ClientConfig.Inline is 1000":     {Inline: 1000},
		"ClientConfig.QP.IRD is negative": {QP: iwarp.QPConfig{IRD: -1}},
		"ClientConfig.QP.ORD is not for":  {QP: iwarp.QPConfig{ORD: 1}},
		"ClientConfig.QP.PrivateData is":  {QP: iwarp.QPConfig{PrivateData: []byte{1}}},
		"MPA.RTR of RTRSend is not for":   {QP: iwarp.QPConfig{MPA: iwarp.MPAOptions{RTR: iwarp.RTRSend}}},
	} {
		_, err := Dial(t.Context(), rnic, "pipe", "nowhere", cfg)
		require.ErrorContains(t, err, want)
	}
	_, err := Dial(t.Context(), rnic, "pipe", "nowhere", nil)
	require.Error(t, err)
}

// A scripted is a server that the test emulates, on a QP.
type scripted struct {
	testing.TB
	client *Client
	qp     *iwarp.QP
	in     *iwarp.MR
	out    *iwarp.MR
	inbox  []byte
	outbox []byte
}

const scriptedReceives = 4

func newScripted(t testing.TB) *scripted {
	h := newHost(t, "pipe", Config{})
	s := &scripted{TB: t, inbox: make([]byte, scriptedReceives*4096), outbox: make([]byte, 4096)}
	pd, err := h.server.AllocPD()
	require.NoError(t, err)
	s.in, err = pd.RegisterMR(s.inbox, 1, nil)
	require.NoError(t, err)
	s.out, err = pd.RegisterMR(s.outbox, 0, nil)
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		cr, err := h.l.Accept(within(t))
		if err == nil {
			s.qp, err = cr.Accept(within(t), &iwarp.QPConfig{
				PD: pd, RecvDepth: scriptedReceives, PrivateData: linux,
				Setup: func(_ context.Context, qp *iwarp.QP) error {
					for i := range scriptedReceives {
						if err := qp.PostRecv(s.receive(i)); err != nil {
							return err
						}
					}
					return nil
				},
			})
		}
		accepted <- err
	}()
	s.client, err = Dial(within(t), h.client, "pipe", h.l.Addr().String(), nil)
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	t.Cleanup(func() {
		_ = s.qp.Abort()
		<-s.client.Done()
	})
	return s
}

func (s *scripted) receive(i int) iwarp.RecvWR {
	return iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{s.in.Slice(i*4096, 4096)}}
}

// recv waits for a call, and returns its header.
func (s *scripted) recv() *wire.Header {
	var wcs [1]iwarp.WC
	h := new(wire.Header)
	if _, err := s.qp.RecvCQ().Wait(within(s.TB), wcs[:]); err != nil || wcs[0].Status != iwarp.StatusSuccess {
		s.Errorf("no call: %v, %v", err, wcs[0].Err())
		return h
	}
	i := int(wcs[0].ID)
	if _, err := h.Parse(slices.Clone(s.inbox[i*4096:][:wcs[0].Len])); err != nil {
		s.Error(err)
	}
	if err := s.qp.PostRecv(s.receive(i)); err != nil {
		s.Error(err)
	}
	return h
}

func (s *scripted) send(parts ...[]byte) {
	n := copy(s.outbox, slices.Concat(parts...))
	// The test may be over when the client has received the message.
	if err := s.qp.Send(within(s.TB), s.out.Slice(0, n)); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) {
		s.Error(fmt.Errorf("a message of %d octets: %w", n, err))
	}
}
