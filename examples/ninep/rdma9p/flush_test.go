package rdma9p

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func tflushMsg(tag, old uint16) []byte {
	return message(tflush, tag, binary.LittleEndian.AppendUint16(nil, old)...)
}

func rflushMsg(tag uint16) []byte { return message(rflush, tag) }

func TestP9R_8_TflushIsAnsweredBehindItsRequest(t *testing.T) {
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{})
	p := w.dial(minMsize)
	p.version(minMsize)
	p.send(message(tread, 1, make([]byte, 16)...))
	p.send(message(tread, 2, make([]byte, 16)...))
	s.next()
	s.next()
	p.send(tflushMsg(3, 1))
	p.send(tflushMsg(4, 3)) // of the Tflush
	p.send(tflushMsg(5, 1)) // once more
	p.send(tflushMsg(6, 99))
	require.Equal(t, rflushMsg(6), p.recv(), "no such request waits")
	p.send(tflushMsg(7, 7))
	require.Equal(t, rflushMsg(7), p.recv(), "a Tflush of itself")

	s.answer(message(tread+1, 2, numbers(0)...))
	require.Equal(t, message(tread+1, 2, numbers(0)...), p.recv())
	s.answer(message(tread+1, 1, numbers(0)...))
	require.Equal(t, message(tread+1, 1, numbers(0)...), p.recv(), "the request first")
	var got [][]byte
	for range 3 {
		got = append(got, p.recv())
	}
	require.ElementsMatch(t, [][]byte{rflushMsg(3), rflushMsg(4), rflushMsg(5)}, got)
	require.Less(t, index(got, rflushMsg(3)), index(got, rflushMsg(4)), "the Tflush of 3 before that of 4")
	require.Empty(t, s.requests, "the handler gets no Tflush")

	// The tags may be used again.
	for tag := range uint16(8) {
		p.send(message(tclunk, tag, numbers(1)...))
		require.Equal(t, tag, parseHeader(s.next()).tag)
		s.answer(message(tclunk+1, tag))
		require.Equal(t, message(tclunk+1, tag), p.recv())
	}
	s.done()
}

func index(list [][]byte, msg []byte) int {
	for i := range list {
		if string(list[i]) == string(msg) {
			return i
		}
	}
	return -1
}

// TestP9R_8_HandlerCannotAnswerTflush: if a handler answers a Tflush itself, the adapter's answer is sent instead.
func TestP9R_8_HandlerCannotAnswerTflush(t *testing.T) {
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{})
	p := w.dial(minMsize)
	p.version(minMsize)
	p.send(message(tread, 1, make([]byte, 16)...))
	s.next()
	p.send(tflushMsg(2, 1))
	p.send(tflushMsg(3, 98))
	require.Equal(t, rflushMsg(3), p.recv(), "the Tflush before was taken")
	s.answer(rflushMsg(2))
	s.answer(message(tread+1, 1, numbers(0)...))
	require.Equal(t, message(tread+1, 1, numbers(0)...), p.recv())
	require.Equal(t, rflushMsg(2), p.recv())
	s.done()
}
