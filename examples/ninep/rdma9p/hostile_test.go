package rdma9p

import (
	"encoding/binary"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func TestP9R_6_12_SizeFieldAndLengthDiffer(t *testing.T) {
	sized := func(size uint32, n int) []byte {
		msg := make([]byte, n)
		copy(msg, appendHeader(nil, size, tclunk, 1))
		return msg
	}
	for name, msg := range map[string][]byte{
		"empty":     {},
		"1 octet":   {7},
		"6 octets":  sized(6, 6),
		"size 0":    sized(0, 11),
		"size 6":    sized(6, 11),
		"one less":  sized(10, 11),
		"one more":  sized(12, 11),
		"very long": sized(0xffffffff, 11),
	} {
		for _, began := range []bool{false, true} {
			for _, srq := range []int{0, 8} {
				t.Run(name, func(t *testing.T) {
					s := newScript(t)
					s.done()
					w := serve(t, "pipe", t.Name(), s, Config{SRQ: srq, Depth: 4})
					p := w.dial(minMsize)
					if began {
						p.version(minMsize)
					}
					p.send(msg)
					p.wantEnd(name)
					w.stopped()
					require.Empty(t, s.requests)
					require.Contains(t, w.log.String(), "protocol error")
				})
			}
		}
	}
}

// TestP9R_6_12_MessagesLongerThanMsize: they exceed their receive, or the session's limit.
func TestP9R_6_12_MessagesLongerThanMsize(t *testing.T) {
	for name, srq := range map[string]int{"own receives": 0, "SRQ": 8} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.done()
			w := serve(t, "pipe", t.Name(), s, Config{SRQ: srq, Depth: 4})
			p := w.dial(20000)
			require.EqualValues(t, 20000, p.version(20000))
			require.EqualValues(t, 5000, p.version(5000))
			p.send(message(twrite, 1, make([]byte, 5001-headerSize)...))
			p.wantEnd("longer than the session allows")

			p = w.dial(20000)
			require.EqualValues(t, 5000, p.version(5000))
			p.send(message(twrite, 1, make([]byte, 5001-headerSize)...))
			p.wantEnd("longer than its receive")
			w.stopped()
			require.Empty(t, s.requests)
		})
	}
}

func TestP9R_6_HandlerWritesNoMessage(t *testing.T) {
	for size := range uint32(headerSize) {
		s := newSession(8192, 4, 10, false)
		_, err := s.plan(header{size: size, typ: tclunk + 1, tag: 1})
		require.ErrorIs(t, err, ErrProtocol)
	}
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{})
	p := w.dial(minMsize)
	p.version(minMsize)
	p.send(message(tclunk, 1, numbers(1)...))
	s.next()
	require.ErrorIs(t, s.write([]byte{6, 0, 0, 0, byte(tclunk + 1), 1, 0}), ErrProtocol)
	p.wantEnd("the handler is not to be understood")
	s.done()
}

func TestP9R_12_HandlerCannotParse(t *testing.T) {
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{})
	p := w.dial(minMsize)
	p.version(minMsize)
	p.send(message(tclunk, 1))
	s.next()
	require.ErrorIs(t, s.write(rerror(noTag, einval)), ErrProtocol)
	p.wantEnd("what the handler cannot parse has no answer")
	s.done()
}

func TestP9R_4_HandlerAnswersWhatItHasNotRead(t *testing.T) {
	result := make(chan error, 1)
	h := handlerFunc(func(in io.ReadCloser, out io.WriteCloser) error {
		msg, _ := readMessage(in)
		msg[4] = byte(rversion)
		_, _ = out.Write(msg)
		part := make([]byte, headerSize)
		_, _ = io.ReadFull(in, part)
		_, err := out.Write(message(tread+1, 1, numbers(0)...))
		result <- err
		return nil
	})
	w := serve(t, "pipe", t.Name(), h, Config{})
	p := w.dial(minMsize)
	p.version(minMsize)
	p.send(message(tread, 1, make([]byte, 16)...))
	require.ErrorIs(t, <-result, ErrProtocol)
	p.wantEnd("its receive is not posted yet")
}

func TestP9R_12_OneTagTwice(t *testing.T) {
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{})
	p := w.dial(minMsize)
	p.version(minMsize)
	p.send(message(tread, 1, make([]byte, 16)...))
	p.send(message(tclunk, 1, numbers(1)...))
	p.send(tflushMsg(1, 1))
	require.Equal(t, rerror(1, einval), p.recv())
	require.Equal(t, rerror(1, einval), p.recv())
	s.next()
	s.answer(message(tread+1, 1, numbers(0)...))
	require.Equal(t, message(tread+1, 1, numbers(0)...), p.recv())
	require.Empty(t, s.requests)
	s.done()
}

// TestP9R_12_ImmediateData: it is no message. It leaves a receive unchanged, which may still contain an answered
// request.
func TestP9R_12_ImmediateData(t *testing.T) {
	for name, srq := range map[string]int{"own receives": 0, "SRQ": 8} {
		for _, began := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				const depth = 4
				s := newScript(t)
				s.done()
				w := serve(t, "pipe", t.Name(), s, Config{SRQ: srq, Depth: depth})
				p := w.dial(minMsize)
				if began {
					p.version(minMsize)
					for i := range uint16(4 * depth) { // each receive has had a request of 8 octets, as long as Immediate Data
						p.send(message(tstatfs, i, 0))
						s.answer(rerror(parseHeader(s.next()).tag, ebadf))
						p.recv()
					}
				}
				require.NoError(t, p.qp.PostSend(iwarp.SendWR{Op: iwarp.OpImmediate, Flags: iwarp.Unsignaled}))
				p.wantEnd("Immediate Data in place of a message")
				w.stopped()
				require.Empty(t, s.requests, "none has come again")
				require.Contains(t, w.log.String(), "Immediate Data")
			})
		}
	}
}

// TestP9R_12_PeerWithoutReceives: a peer without a receive for an answer ends its own connection, and no other.
func TestP9R_12_PeerWithoutReceives(t *testing.T) {
	w := serve(t, "pipe", t.Name(), echo{}, Config{})
	good := w.dial(minMsize)
	good.version(minMsize)
	bad, err := w.tryDial(&iwarp.QPConfig{RNRWait: -1}, minMsize)
	require.NoError(t, err)
	require.NoError(t, bad.sendOnly(tversionMsg(minMsize, "9P2000.L")))
	bad.wantEnd("its own side ends it")
	require.ErrorIs(t, bad.qp.Err(), iwarp.ErrNoReceive)
	require.Len(t, good.call(message(tstatfs, 1, numbers(1)...)), headerSize+4)
}

// TestP9R_12_PeerThatTakesNoAnswers: its requests have to wait, so that what the server holds for it is bounded.
func TestP9R_12_PeerThatTakesNoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const depth, msize = 4, 1 << 16
		w := serve(t, "pipe", t.Name(), echo{}, Config{Depth: depth})
		p, err := w.tryDial(&iwarp.QPConfig{RNRWait: iwarp.RNRWaitForever}, msize)
		require.NoError(t, err)
		p.version(msize)
		server := <-w.qps
		for i := range 200 { // there is a receive for none of the answers
			require.NoError(t, p.sendOnly(message(tread, uint16(i), make([]byte, msize-headerSize-1)...)))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		received := server.Stats().Received.Send.Messages
		require.Less(t, received, uint64(200), "the server has stopped reading")
		w.stopped()
	})
}

func TestP9R_12_ManyFids(t *testing.T) {
	const most = 100
	w := serve(t, "pipe", t.Name(), walker{}, Config{MaxFids: most})
	walk := func(tag uint16, fid uint32, names uint16) []byte {
		return message(twalk, tag, binary.LittleEndian.AppendUint16(numbers(1, fid), names)...)
	}
	p := w.dial(minMsize)
	p.version(minMsize)
	for i := range uint32(10 * most) { // given up again
		p.call(walk(1, i, 0))
		p.call(message(tclunk+msgType(i%2)*2, 1, numbers(i)...))
	}
	for range 10 * most { // the same
		p.call(walk(1, 7, 0))
	}
	for i := range uint32(10 * most) { // not created, because names are missing
		p.call(walk(1, 1000+i, 2))
	}
	for i := range uint32(most) {
		p.call(walk(1, 1000+i, 1))
		if i == 0 {
			p.call(message(tclunk, 1, numbers(7)...))
		}
	}
	p.send(walk(1, 10, 1))
	p.wantEnd("one too many")
	w.stopped()
	require.Contains(t, w.log.String(), "more than 100 fids in use")
}

// A walker is a handler whose Twalk finds at most one name.
type walker struct{}

func (walker) Handle(t io.ReadCloser, r io.WriteCloser) error {
	for {
		msg, err := readMessage(t)
		if err != nil {
			return nil
		}
		h := parseHeader(msg)
		out := message(h.typ+1, h.tag, msg[headerSize:]...)
		switch h.typ {
		case twalk:
			n := min(short(msg, 8), 1)
			out = message(h.typ+1, h.tag, append(binary.LittleEndian.AppendUint16(nil, n), make([]byte, 13*n)...)...)
		case tremove:
			out = rerror(h.tag, eio)
		default: // an echo
		}
		if _, err := r.Write(out); err != nil {
			return nil
		}
	}
}

// TestP9R_12_RacedFids: a fid that the handler has counts, and so does its attribute, in whatever order the handler
// performs and answers requests that the peer has sent together.
func TestP9R_12_RacedFids(t *testing.T) {
	const fid, size = 5, 1000
	orders := [][]uint16{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	types := []msgType{tattach, tclunk, tremove, txattrcreate}
	for n := range 64 {
		requests := []msgType{types[n%4], types[n/4%4], types[n/16]}
		for _, done := range orders {
			for _, answered := range orders {
				s := begunSession(10, 1)
				require.NoError(t, s.fids.add(fid, 0))
				for tag, typ := range requests {
					msg := message(typ, uint16(tag), numbers(fid)...)
					if typ == txattrcreate {
						msg = createMsg(uint16(tag), fid, size)
					}
					wantVerdict(t, s, deliver, msg)
				}
				there, attr, replies := true, 0, make([][]byte, len(requests))
				for _, tag := range done {
					typ := requests[tag]
					replies[tag] = message(typ+1, tag)
					switch {
					case typ == tattach:
						there, attr = true, 0
					case !there:
						replies[tag] = rerror(tag, ebadf)
					case typ == txattrcreate:
						attr = size
					default:
						there, attr = false, 0
					}
				}
				for _, tag := range answered {
					_, err := s.answered(replies[tag])
					require.NoError(t, err)
				}
				if there {
					require.Contains(t, s.fids.set, uint32(fid), "%v, done as %v, answered as %v", requests, done, answered)
					require.GreaterOrEqual(t, s.fids.attrs, uint32(attr), "%v, done as %v, answered as %v", requests, done, answered)
				}
			}
		}
	}
}

// createMsg returns a Txattrcreate.
func createMsg(tag uint16, fid uint32, size uint64) []byte {
	body := append(numbers(fid), 6, 0)
	body = append(body, "user.a"...)
	body = append(body, numbers(uint32(size), uint32(size>>32), 0)...)
	return message(txattrcreate, tag, body...)
}

// begunSession is a session with an msize.
func begunSession(depth, maxFids int) *session {
	s := newSession(8192, depth, maxFids, false)
	s.msize, s.granted = 8192, 8192
	return s
}

// TestP9R_12_FailedClunk: the fid is gone all the same, and a failed request creates no fid.
func TestP9R_12_FailedClunk(t *testing.T) {
	s := begunSession(10, 1)
	step := func(request, reply []byte) {
		wantVerdict(t, s, deliver, request)
		_, err := s.answered(reply)
		require.NoError(t, err)
	}
	for i, typ := range []msgType{tattach, tauth, txattrwalk, twalkgetattr} {
		fid := uint32(10 + i)
		body := numbers(fid, fid)
		step(message(typ, 1, body...), rerror(1, eio))
		require.Empty(t, s.fids.set)
		step(message(typ, 1, body...), message(typ+1, 1))
		require.Len(t, s.fids.set, 1)
		step(message(tclunk, 1, numbers(fid)...), rerror(1, eio))
		require.Empty(t, s.fids.set)
	}
}

// TestP9R_12_LongAttribute: it is refused, since the server would hold all of it.
func TestP9R_12_LongAttribute(t *testing.T) {
	s := begunSession(10, 10)
	wantVerdict(t, s, deliver, createMsg(1, 5, maxXattr))
	for _, size := range []uint64{maxXattr + 1, 1 << 32, 1 << 40, math.MaxUint64} {
		require.Equal(t, rerror(2, e2big), wantVerdict(t, s, answer, createMsg(2, 5, size)))
	}
}

// TestP9R_12_UnfinishedAttributes: the server could hold as many as there are fids.
func TestP9R_12_UnfinishedAttributes(t *testing.T) {
	const most = maxXattrs / maxXattr
	s := begunSession(10, 1000)
	create := func(fid uint32, size uint64, reply []byte) {
		t.Helper()
		wantVerdict(t, s, deliver, createMsg(1, fid, size))
		_, err := s.answered(reply)
		require.NoError(t, err)
	}
	created := message(txattrcreate+1, 1)
	for range most + 1 {
		create(5, maxXattr, rerror(1, ebadf)) // begins no attribute
	}
	for fid := range uint32(most - 1) {
		create(fid, maxXattr, created)
		create(fid, 1, created) // the handler may have performed it first
	}
	wantVerdict(t, s, deliver, createMsg(1, most, maxXattr))
	full := func() { require.Equal(t, rerror(2, enospc), wantVerdict(t, s, answer, createMsg(2, 100, 1))) }
	full() // before the last is answered
	_, err := s.answered(created)
	require.NoError(t, err)
	full()
	wantVerdict(t, s, deliver, createMsg(3, 100, 0))
	for _, typ := range []msgType{tclunk, tremove} {
		wantVerdict(t, s, deliver, message(typ, uint16(typ), numbers(uint32(typ-tclunk))...))
		create(200+uint32(typ), maxXattr, created)
		full()
	}
}

func TestP9R_12_PeerThatSaysNothing(t *testing.T) {
	for _, what := range []string{"nothing", "no known version", "a session"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serve(t, "pipe", t.Name(), echo{}, Config{})
				p := w.dial(minMsize)
				start := time.Now()
				switch what {
				case "no known version":
					p.call(tversionMsg(8192, "9P2000"))
				case "a session":
					p.version(8192)
					time.Sleep(1000 * time.Hour)
					require.Len(t, p.call(message(tstatfs, 1)), headerSize)
					return
				}
				p.wantEnd("no Tversion has come")
				require.Equal(t, 30*time.Second, time.Since(start))
				w.stopped()
				require.Contains(t, w.log.String(), "no Tversion in time")
			})
		})
	}
}
