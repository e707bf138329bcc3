package rdma9p

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// cut passes octets to an assembler in pieces of the lengths in cuts. It returns the messages of at most most octets.
func cut(stream, cuts []byte, most int) (messages [][]byte) {
	var a assembler
	for i := 0; len(stream) > 0; i++ {
		n := len(stream)
		if len(cuts) > 0 {
			n = min(n, int(cuts[i%len(cuts)])+1)
		}
		piece := stream[:n]
		stream = stream[n:]
		for len(piece) > 0 {
			piece = piece[a.add(piece):]
			if a.hasHeader() {
				h := parseHeader(a.head[:])
				if h.size < headerSize {
					return messages
				}
				var body []byte
				if int64(h.size) <= int64(most) {
					body = make([]byte, h.size)
				}
				a.begin(h.size, body)
			}
			if a.complete() {
				if a.body != nil {
					messages = append(messages, a.body)
				}
				a.reset()
			}
		}
	}
	return messages
}

func TestP9R_13_ArbitraryCuts(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 13))
	for range 300 {
		var stream []byte
		var want [][]byte
		for range r.IntN(6) {
			body := make([]byte, r.IntN(300))
			for i := range body {
				body[i] = byte(r.Uint32())
			}
			msg := message(msgType(r.Uint32()), uint16(r.Uint32()), body...)
			stream = append(stream, msg...)
			if len(msg) <= 200 {
				want = append(want, msg)
			}
		}
		cuts := make([]byte, 1+r.IntN(9))
		for i := range cuts {
			cuts[i] = byte(r.Uint32() >> r.IntN(8))
		}
		require.Equal(t, want, cut(stream, cuts, 200))
	}
}

func FuzzWrite(f *testing.F) {
	f.Add(append(message(tclunk+1, 1), message(tread+1, 2, 1, 2, 3)...), []byte{0})
	f.Add(message(tread+1, 2, make([]byte, 50)...), []byte{3, 0, 9})
	f.Add([]byte{6, 0, 0, 0, 1, 1, 1}, []byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 1, 1, 5, 5}, []byte{2})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		const most = 1000
		got := cut(stream, cuts, most)
		require.Equal(t, cut(stream, nil, most), got, "cuts change nothing")
		for _, msg := range got {
			h, err := checkMessage(msg)
			require.NoError(t, err)
			i := bytes.Index(stream, msg)
			require.GreaterOrEqual(t, i, 0)
			require.LessOrEqual(t, h.size, uint32(most))
		}
	})
}

// holdSession checks the rules of a session with any messages of the peer, of which the handler answers some.
func holdSession(t *testing.T, octets []byte) {
	const depth, msize, fids = 4, 8192, 8
	s := newSession(msize, depth, fids, len(octets)%2 == 1)
	waiting := make(map[uint16]bool) // tags that the handler has
	for len(octets) > 1 {
		n := min(int(octets[0])%40, len(octets)-1)
		msg := bytes.Clone(octets[1 : 1+n])
		octets = octets[1+n:]
		if len(msg) >= headerSize && msg[0]%8 != 0 { // mostly valid ones
			binary.LittleEndian.PutUint32(msg, uint32(len(msg)))
		}
		h, err := checkMessage(msg)
		if err != nil {
			_, _, err := s.take(msg, nil)
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		if !s.ready(h) || len(msg)%3 == 0 {
			if !answerOne(t, s, waiting) {
				return
			}
		}
		if !s.ready(h) {
			continue
		}
		v, out, err := s.take(msg, nil)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		switch v {
		case deliver:
			require.False(t, waiting[h.tag])
			waiting[h.tag] = true
			s.wasRead(h.tag)
		case answer:
			got, err := checkMessage(out)
			require.NoError(t, err)
			require.Equal(t, h.tag, got.tag)
			require.LessOrEqual(t, len(out), inlineSize)
		case hold:
			require.Equal(t, tflush, h.typ)
		}
		require.LessOrEqual(t, len(s.requests), depth)
		require.LessOrEqual(t, len(s.fids.set), fids)
		require.LessOrEqual(t, s.fids.attrs, uint32(maxXattrs))
		require.LessOrEqual(t, s.msize, uint32(msize))
	}
	for len(waiting) > 0 {
		if !answerOne(t, s, waiting) {
			return
		}
	}
	require.Empty(t, s.requests, "each request has its answer")
}

// answerOne answers the request with the least tag as the handler would, and then what waited for it. It returns false
// if the connection would end.
func answerOne(t *testing.T, s *session, waiting map[uint16]bool) bool {
	for _, r := range s.requests {
		if !waiting[r.tag] {
			continue
		}
		delete(waiting, r.tag)
		reply := message(r.typ+1, r.tag, make([]byte, 20)...)
		if r.typ == tversion {
			reply = message(rversion, r.tag, versionBody(s.asked, "9P2000.L")...)
		}
		p, err := s.plan(parseHeader(reply))
		require.NoError(t, err)
		require.Equal(t, send, p)
		out, err := s.answered(reply)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol, "too many fids")
			return false
		}
		require.Equal(t, r.tag, parseHeader(out).tag)
		break
	}
	for {
		out, ok := s.flushed(nil)
		if !ok {
			return true
		}
		require.Equal(t, rflush, parseHeader(out).typ)
	}
}

func TestP9R_13_ArbitraryMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 14))
	types := []msgType{tversion, tattach, twalk, tclunk, tremove, tread, twrite, tflush, tlopen, txattrcreate, 14, 200}
	for range 2000 {
		octets := seedMessage(tversionMsg(8192, "9P2000.L"))
		for range r.IntN(30) {
			body := make([]byte, r.IntN(24))
			for i := range body {
				body[i] = byte(r.IntN(4))
			}
			octets = append(octets, seedMessage(message(types[r.IntN(len(types))], uint16(r.IntN(5)), body...))...)
		}
		holdSession(t, octets)
	}
}

// seedMessage encodes a message as holdSession reads it.
func seedMessage(msg []byte) []byte {
	return append([]byte{byte(len(msg))}, msg...)
}

func FuzzMessages(f *testing.F) {
	version := seedMessage(tversionMsg(8192, "9P2000.L"))
	f.Add(version)
	f.Add(append(bytes.Clone(version), seedMessage(tflushMsg(1, 1))...))
	f.Add(append(append(bytes.Clone(version), seedMessage(message(tread, 1, make([]byte, 16)...))...), seedMessage(tflushMsg(2, 1))...))
	f.Add(append(bytes.Clone(version), seedMessage(message(tremove, 1, numbers(1)...))...))
	f.Add([]byte{1, 1, 1, 1, 1})
	f.Fuzz(holdSession)
}
