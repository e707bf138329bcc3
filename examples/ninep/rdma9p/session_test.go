package rdma9p

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func TestP9R_3_MsizeIsTheSmallerOne(t *testing.T) {
	for _, x := range []struct{ ours, asked, want uint32 }{
		{0, 131072, 131072},
		{0, 1 << 20, 256 << 10},
		{0, math.MaxUint32, 256 << 10},
		{0, minMsize, minMsize},
		{8192, 8193, 8192},
		{8192, 8191, 8191},
		{1 << 20, 1 << 20, 1 << 20},
		{minMsize, 1 << 20, minMsize},
	} {
		t.Run(fmt.Sprint(x.ours, " ", x.asked), func(t *testing.T) {
			s := newScript(t)
			s.done()
			w := serve(t, "pipe", t.Name(), s, Config{MaxMsize: int(x.ours), Depth: 4})
			require.Equal(t, x.want, w.dial(minMsize).version(x.asked))
			got, version, ok := parseVersion(<-s.versions)
			require.True(t, ok)
			require.Equal(t, x.want, got, "the handler gets the lower one")
			require.Equal(t, "9P2000.L", version)
		})
	}
}

func TestP9R_3_TversionsThatBeginNoSession(t *testing.T) {
	w := serve(t, "pipe", t.Name(), echo{}, Config{})
	p := w.dial(minMsize)
	for _, msize := range []uint32{0, 1, minMsize - 1} {
		require.Equal(t, rerror(noTag, einval), p.call(tversionMsg(msize, "9P2000.L")))
	}
	for _, version := range []string{"", "9P2000", "9P2000.u", "9P2000.Lx", "9P1999.L"} {
		want := message(rversion, noTag, versionBody(8192, unknownVersion)...)
		require.Equal(t, want, p.call(tversionMsg(8192, version)), version)
	}
	for typ := range 256 {
		if msgType(typ) != tversion {
			require.Equal(t, rerror(7, eproto), p.call(message(msgType(typ), 7)), "before Tversion")
		}
	}
	require.EqualValues(t, 5000, p.version(5000))
}

// TestP9R_3_HandlerRefusesVersion: the client may try another version in the same receive.
func TestP9R_3_HandlerRefusesVersion(t *testing.T) {
	s := newSession(8192, 4, 10, false)
	take := func(msg []byte) { wantVerdict(t, s, deliver, msg) }
	for _, refusal := range [][]byte{
		rerror(noTag, einval),
		message(rversion, noTag, versionBody(0, unknownVersion)...),
		message(rversion, noTag, versionBody(8192, "9P2000")...),
	} {
		take(tversionMsg(8192, "9P2000.L"))
		s.wasRead(noTag)
		_, err := s.answered(refusal)
		require.NoError(t, err)
		require.Zero(t, s.msize)
		require.Zero(t, s.granted)
		wantVerdict(t, s, answer, message(tclunk, 1))
	}
	for _, msize := range []uint32{0, minMsize - 1, 5001} {
		take(tversionMsg(5000, "9P2000.L"))
		_, err := s.answered(message(rversion, noTag, versionBody(msize, "9P2000.L")...))
		require.ErrorIs(t, err, ErrProtocol, "an msize of the handler's own")
	}
	take(tversionMsg(5000, "9P2000.L"))
	_, err := s.answered(message(rversion, noTag, 1, 2))
	require.ErrorIs(t, err, ErrProtocol)
}

// TestP9R_3_LaterTversionThatIsRefused: it ends the present session. The receives keep the msize that the handler has
// agreed to.
func TestP9R_3_LaterTversionThatIsRefused(t *testing.T) {
	s := newSession(8192, 4, 10, false)
	wantVerdict(t, s, deliver, tversionMsg(8192, "9P2000.L"))
	s.wasRead(noTag)
	_, err := s.answered(message(rversion, noTag, versionBody(5000, "9P2000.L")...))
	require.NoError(t, err)
	require.EqualValues(t, 5000, s.msize)
	require.EqualValues(t, 5000, s.granted, "not what was asked for")
	wantVerdict(t, s, deliver, tversionMsg(8192, "9P2000.L"))
	s.wasRead(noTag)
	_, err = s.answered(rerror(noTag, einval))
	require.NoError(t, err)
	require.Zero(t, s.msize)
	require.EqualValues(t, 5000, s.granted)
	wantVerdict(t, s, answer, message(tclunk, 1))
}

func wantVerdict(t *testing.T, s *session, want verdict, msg []byte) []byte {
	t.Helper()
	h, err := checkMessage(msg)
	require.NoError(t, err)
	require.True(t, s.ready(h))
	v, out, err := s.take(msg, nil)
	require.NoError(t, err)
	require.Equal(t, want, v)
	return out
}

func TestP9R_3_ReceivesArePostedBeforeRversion(t *testing.T) {
	const depth, msize = 16, 20000
	w := serve(t, "pipe", t.Name(), echo{}, Config{Depth: depth, QP: iwarp.QPConfig{RNRWait: -1}})
	p := w.dial(msize)
	require.EqualValues(t, msize, p.version(msize))
	var want [depth][]byte
	for i := range want {
		want[i] = message(twrite, uint16(i), make([]byte, msize-headerSize)...)
		if i > 0 {
			want[i] = want[i][:msize-1]
			binary.LittleEndian.PutUint32(want[i], msize-1)
		}
		p.send(want[i])
	}
	require.Equal(t, rerror(0, eio), p.recv(), "the echo has msize octets")
	for i := 1; i < depth; i++ {
		want[i][4]++
		require.Equal(t, want[i], p.recv())
	}
}

func TestP9R_3_LaterTversionDoesNotRaiseMsize(t *testing.T) {
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{Depth: 4})
	p := w.dial(8192)
	require.EqualValues(t, 8192, p.version(8192))
	require.EqualValues(t, 8192, p.version(65536))
	require.EqualValues(t, 5000, p.version(5000))
	require.EqualValues(t, 8192, p.version(8192), "the receives still have 8192 octets")

	// A Tversion waits until all requests are answered, and later requests wait for its answer.
	require.EqualValues(t, 5000, p.version(5000))
	p.send(message(tclunk, 1, numbers(1)...))
	got := s.next()
	p.send(tversionMsg(6000, "9P2000.L"))
	p.send(message(tclunk, 2, numbers(2)...))
	require.Empty(t, s.requests)
	require.Len(t, s.versions, 5)
	s.answer(message(tclunk+1, 1))
	require.Equal(t, message(tclunk, 1, numbers(1)...), got)
	require.Equal(t, message(tclunk+1, 1), p.recv())
	require.Equal(t, rversion, parseHeader(p.recv()).typ)
	require.Equal(t, message(tclunk, 2, numbers(2)...), s.next())
	s.done()
}

func TestP9R_3_TversionIsAlone(t *testing.T) {
	s := newSession(8192, 4, 10, false)
	version, other := header{typ: tversion}, header{typ: tread}
	require.True(t, s.ready(version))
	wantVerdict(t, s, deliver, tversionMsg(8192, "9P2000.L"))
	require.False(t, s.ready(version))
	require.False(t, s.ready(other), "its answer is to come first")
	s.wasRead(noTag)
	_, err := s.answered(message(rversion, noTag, versionBody(8192, "9P2000.L")...))
	require.NoError(t, err)
	for i := range uint16(4) {
		require.True(t, s.ready(other))
		wantVerdict(t, s, deliver, message(tread, i, make([]byte, 16)...))
		require.False(t, s.ready(version), "the answers to the others are to come first")
	}
	require.False(t, s.ready(other))
}

func TestP9R_4_ReceiveIsPostedBeforeTheAnswer(t *testing.T) {
	w := serve(t, "pipe", t.Name(), echo{}, Config{Depth: 1, QP: iwarp.QPConfig{RNRWait: -1}})
	p := w.dial(minMsize)
	p.version(minMsize)
	// Without a receive the next request would end the connection at once.
	for i := range 1000 {
		msg := message(tstatfs, uint16(i), numbers(uint32(i))...)
		if i%3 == 0 {
			msg = message(tflush, uint16(i), 0xee, 0xee)
		}
		p.call(msg)
	}
}

func TestP9R_4_OneAnswerForEachRequest(t *testing.T) {
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{})
	p := w.dial(minMsize)
	p.version(minMsize)
	p.send(message(tclunk, 1, numbers(1)...))
	s.next()
	s.answer(message(tclunk+1, 2)) // an answer without a request
	s.answer(message(tclunk+1, 1))
	s.answer(message(tclunk+1, 1)) // a second answer
	s.answer(rerror(1, eio))
	require.Equal(t, message(tclunk+1, 1), p.recv())
	p.send(message(tclunk, 3, numbers(1)...))
	s.next()
	s.answer(message(tclunk+1, 3))
	require.Equal(t, message(tclunk+1, 3), p.recv(), "nothing between the two")
	require.EqualValues(t, 3, p.close().Received.Send.Messages)
	require.Contains(t, w.log.String(), "answered a request that does not wait")
	s.done()
}

func TestP9R_5_AnswersAreShorterThanMsize(t *testing.T) {
	const msize = 5000
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{})
	p := w.dial(msize)
	p.version(msize)
	for i, n := range []int{headerSize, inlineSize, inlineSize + 1, msize - 1, msize, msize + 1, 3 * msize, headerSize} {
		tag := uint16(i)
		p.send(message(tread, tag, make([]byte, 16)...))
		s.next()
		long := message(tread+1, tag, make([]byte, n-headerSize)...)
		s.answer(long)
		if n < msize {
			require.Equal(t, long, p.recv())
		} else {
			require.Equal(t, rerror(tag, eio), p.recv())
		}
	}
	require.Contains(t, w.log.String(), "too long")
	s.done()
}

func TestP9R_5_CountsAreLowered(t *testing.T) {
	s := newSession(8192, 100, 10, false)
	wantVerdict(t, s, deliver, tversionMsg(8192, "9P2000.L"))
	s.wasRead(noTag)
	_, err := s.answered(message(rversion, noTag, versionBody(8192, "9P2000.L")...))
	require.NoError(t, err)
	for i, x := range []struct{ count, want uint32 }{
		{0, 0},
		{8192 - ioHeader - 1, 8192 - ioHeader - 1},
		{8192 - ioHeader, 8192 - ioHeader},
		{8192 - ioHeader + 1, 8192 - ioHeader},
		{math.MaxUint32, 8192 - ioHeader},
	} {
		for j, typ := range []msgType{tread, treaddir} {
			tag := uint16(2*i + j)
			msg := message(typ, tag, numbers(1, 2, 3, x.count)...)
			wantVerdict(t, s, deliver, msg)
			require.Equal(t, message(typ, tag, numbers(1, 2, 3, x.want)...), msg)
		}
	}
	other := message(twrite, 50, numbers(1, 2, 3, math.MaxUint32)...)
	wantVerdict(t, s, deliver, other)
	require.Equal(t, message(twrite, 50, numbers(1, 2, 3, math.MaxUint32)...), other)
	short := message(tread, 51, 1, 2, 3)
	wantVerdict(t, s, deliver, short)
}
