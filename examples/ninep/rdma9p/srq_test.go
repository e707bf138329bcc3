package rdma9p

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestP9R_3_4_SharedReceives(t *testing.T) {
	const msize = 9000
	w := serve(t, "pipe", t.Name(), echo{}, Config{SRQ: 4, MaxMsize: msize})
	var peers []*peer
	for range 3 {
		p := w.dial(msize)
		require.EqualValues(t, msize, p.version(1<<20))
		peers = append(peers, p)
	}
	for round := range 50 {
		for i, p := range peers {
			p.send(message(twrite, uint16(round), make([]byte, msize-headerSize-1-i)...))
		}
		for i, p := range peers {
			require.Len(t, p.recv(), msize-1-i)
		}
	}
}

// TestP9R_12_SharedReceivesComeBack: however a connection ends, and whatever it held, it takes no receives of the SRQ
// with it.
func TestP9R_12_SharedReceivesComeBack(t *testing.T) {
	synctest.Test(t, sharedReceivesComeBack) // an aborted peer may be noticed only after RNRWait
}

func sharedReceivesComeBack(t *testing.T) {
	const shared, depth = 6, 4
	s := newScript(t)
	s.done()
	w := serve(t, "pipe", t.Name(), s, Config{SRQ: shared, Depth: depth, MaxMsize: 8192})
	for i := range 8 * shared {
		p := w.dial(8192)
		p.version(8192)
		for tag := range uint16(i%depth + 1) {
			p.send(message(tread, tag, make([]byte, 16)...))
			s.next()
		}
		switch i % 4 {
		case 0:
			p.send(message(tread, 9, make([]byte, 8192)...)) // too long
			p.wantEnd("too long")
		case 1:
			p.send([]byte{1, 2, 3})
			p.wantEnd("no message")
		case 2:
			for tag := range uint16(20) { // more than it may send
				p.send(message(tread, 100+tag, make([]byte, 16)...))
			}
			require.NoError(t, p.qp.Abort())
		default:
			require.NoError(t, p.qp.Abort())
		}
		<-s.ended
		for len(s.requests) > 0 {
			<-s.requests
		}
	}
	for range 2 {
		w.dial(8192).version(8192)
	}
}
