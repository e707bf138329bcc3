package rdma9p

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestP9R_14_ReadOnly(t *testing.T) {
	harmless := map[msgType]bool{
		tstatfs: true, tlopen: true, treadlink: true, tgetattr: true, txattrwalk: true, treaddir: true, tfsync: true, tlock: true,
		tgetlock: true, tauth: true, tattach: true, twalk: true, tread: true, tclunk: true, tflushf: true, twalkgetattr: true,
	}
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{ReadOnly: true})
	p := w.dial(minMsize)
	p.version(minMsize)
	for typ := range 256 {
		typ := msgType(typ)
		request := message(typ, 1, make([]byte, 16)...)
		switch {
		case typ == tversion || typ == tflush || typ == tremove:
		case !harmless[typ]:
			require.Equal(t, rerror(1, erofs), p.call(request), "type %d", typ)
			require.Empty(t, s.requests, "type %d", typ)
		default:
			p.send(request)
			require.Equal(t, typ, parseHeader(s.next()).typ)
			s.answer(message(typ+1, 1))
			require.Equal(t, message(typ+1, 1), p.recv())
		}
	}
	s.done()
}

func TestP9R_14_ReadOnlyOpens(t *testing.T) {
	s := newSession(8192, 4, 10, true)
	s.msize, s.granted = 8192, 8192
	for flags, refused := range map[uint32]bool{
		0: false, 0o100000: false, 0o304000: false, 0o2000: false, // O_LARGEFILE, with O_DIRECTORY and O_NONBLOCK; O_APPEND
		1: true, 2: true, 3: true, 0o100: true, 0o1000: true, 0o100002: true, 0o20200000: true, 1 << 31: true,
	} {
		msg := message(tlopen, 1, numbers(1, flags)...)
		if refused {
			require.Equal(t, rerror(1, erofs), wantVerdict(t, s, answer, msg), "%o", flags)
			continue
		}
		wantVerdict(t, s, deliver, msg)
		_, err := s.answered(message(tlopen+1, 1))
		require.NoError(t, err)
	}
}

// TestP9R_14_ReadOnlyRemove: a refused Tremove still releases its fid: the handler gets a Tclunk.
func TestP9R_14_ReadOnlyRemove(t *testing.T) {
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{ReadOnly: true})
	p := w.dial(minMsize)
	p.version(minMsize)
	for _, reply := range [][]byte{message(tclunk+1, 1), rerror(1, ebadf), make([]byte, 100)} {
		if len(reply) == 100 {
			copy(reply, appendHeader(nil, 100, tclunk+1, 1))
		}
		p.send(message(tremove, 1, numbers(9)...))
		require.Equal(t, message(tclunk, 1, numbers(9)...), s.next())
		s.answer(reply)
		require.Equal(t, rerror(1, erofs), p.recv())
	}
	s.done()
}
