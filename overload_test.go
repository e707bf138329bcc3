package iwarp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testproc"
	"github.com/goiwarp/iwarp/stag"
)

// TestOverloadOfPostedWork: ten times as much work is posted as the queue holds, while the peer takes nothing. The
// excess is refused at once and takes no memory. When the peer takes messages again, all accepted work completes, in
// order.
func TestOverloadOfPostedWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const depth, size, times = 64, 16 << 10, 10
		client, server := connect(t, pairConfig{
			network: "pipe", client: iwarp.QPConfig{SendDepth: depth}, server: iwarp.QPConfig{RecvDepth: depth, RNRWait: time.Hour},
		})
		src, srcMR := client.register(size, 0, nil)
		fillRandom(src)
		dst, dstMR := server.register(depth*size, stag.LocalWrite, nil)
		post := func(id int) error {
			return client.qp.PostSend(iwarp.SendWR{ID: uint64(id), Op: iwarp.OpSend, Local: []iwarp.SGE{srcMR.Slice(0, size)}})
		}
		before := aliveHeap()
		for id := range times * depth {
			if err := post(id); id < depth {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, iwarp.ErrQueueFull)
				require.ErrorContains(t, err, "64 send work requests")
			}
		}
		time.Sleep(time.Hour / 2)
		synctest.Wait()
		require.Less(t, aliveHeap(), before+depth*size/2, "what is posted is not copied")
		require.Equal(t, iwarp.StateRTS, client.qp.State())
		require.Equal(t, iwarp.StateRTS, server.qp.State())

		recv := func(id int) {
			require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{ID: uint64(id), Local: []iwarp.SGE{dstMR.Slice(id%depth*size, size)}}))
		}
		for id := range depth {
			recv(id)
		}
		posted := depth
		for id := range times * depth {
			wc := server.completes(server.qp.RecvCQ(), 1)[0]
			require.NoError(t, wc.Err())
			require.EqualValues(t, id, wc.ID)
			require.Equal(t, src, dst[id%depth*size:][:size])
			wc = client.completes(client.qp.SendCQ(), 1)[0]
			require.NoError(t, wc.Err())
			require.EqualValues(t, id, wc.ID)
			if posted < times*depth {
				recv(posted)
				require.NoError(t, post(posted), "a completion makes room for the next one")
				posted++
			}
		}
		synctest.Wait()
		var wcs [1]iwarp.WC
		require.Zero(t, client.qp.SendCQ().Poll(wcs[:])+server.qp.RecvCQ().Poll(wcs[:]), "nothing completes twice")
	})
}

// aliveHeap returns the size of the live heap.
func aliveHeap() uint64 {
	runtime.GC()
	runtime.GC() // the second collection frees what pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A boundedServer gives each connection memory of its own, as long as its limits allow.
type boundedServer struct {
	*side
	l       *iwarp.Listener
	refused chan error
	holds   sync.WaitGroup // memory of connections
}

func newBoundedServer(t *testing.T, most, octets int) *boundedServer {
	s := &boundedServer{side: newSide(t, &iwarp.Config{Limits: iwarp.Limits{MaxQP: most}}), refused: make(chan error, 1<<16)}
	var err error
	s.l, err = s.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	ctx := context.Background()
	go s.l.Serve(ctx, func(cr *iwarp.ConnRequest) { //nolint:errcheck // ends with the RNIC
		mr, err := s.pd.RegisterMR(make([]byte, octets), stag.LocalWrite|stag.RemoteWrite, nil)
		if err != nil {
			s.refused <- err
			return
		}
		at, _ := mr.Advertise(0, octets).AppendBinary(nil)
		qp, err := cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd, PrivateData: at})
		if err != nil {
			s.refused <- errors.Join(err, mr.Close())
			return
		}
		s.holds.Go(func() {
			<-qp.Done()
			_ = mr.Close()
		})
	})
	return s
}

// storm dials the given number of times, a few at once, and returns the accepted QPs and the number of failures.
func (s *boundedServer) storm(client *side, times int) (qps []*iwarp.QP, failed int) {
	const inFlight = 16
	ctx := testContext(s.T)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range inFlight {
		all.Go(func() {
			for range times / inFlight {
				qp, err := client.rnic.Dial(ctx, "tcp", s.l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
				mu.Lock()
				if err == nil {
					qps = append(qps, qp)
				} else {
					failed++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.NoError(s, ctx.Err(), "no one is left waiting")
	return qps, failed
}

// TestOverloadOfConnections: 2,000 peers connect to a server that has memory for 240. The others are refused with
// ErrLimit; when the peers leave, there is room again, and the memory is free.
func TestOverloadOfConnections(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	const most, octets, memory = 240, 64 << 10, 48 << 20
	debug.SetMemoryLimit(memory)
	s, client := newBoundedServer(t, most, octets), newSide(t, nil)
	for _, times := range []int{2000, 2 * most} {
		qps, failed := s.storm(client, times)
		require.Len(t, qps, most)
		require.Equal(t, times-most, failed)
		for range failed {
			require.ErrorIs(t, <-s.refused, iwarp.ErrLimit)
		}
		require.Empty(t, s.refused, "an initiator that is rejected does not try again")
		require.Less(t, aliveHeap(), uint64(memory), "what was refused has left nothing")

		block := make([]byte, 8)
		mr, err := client.pd.RegisterMR(block, stag.LocalWrite, nil)
		require.NoError(t, err)
		for i, qp := range qps {
			binary.BigEndian.PutUint64(block, uint64(i))
			var at iwarp.RemoteBuffer
			require.NoError(t, at.UnmarshalBinary(qp.PrivateData()))
			require.NoError(t, qp.RDMAWrite(testContext(t), at, mr.Slice(0, 8)), "those that were accepted work")
			require.NoError(t, qp.Close())
		}
		require.NoError(t, mr.Close())
		s.holds.Wait()
		require.Zero(t, s.rnic.InUse().MaxMR, "the memory of connections is free")
	}
}
