package rma

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// TestRMA_29_PortalHasSoManySlots: completions come in any order, with the slot and the tag, and a slot
// can be used again after its completion only.
func TestRMA_29_PortalHasSoManySlots(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r, h, p := asks(t, plan{}, 0)
		slots := map[uint64]Slot{}
		for i := range 4 {
			s, err := p.Post(Command{Op: Read, Handle: h, Buf: make([]byte, 16), Tag: uint64(i)})
			require.NoError(t, err)
			slots[uint64(i)] = s
		}
		_, err := p.Post(Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
		require.ErrorIs(t, err, ErrNoSlot)
		require.Error(t, p.Close(), "slots are in use")
		var msgs [][]byte
		for range 4 {
			msgs = append(msgs, r.receives(wire.TypeReadReq))
		}
		seen := map[op.ID]bool{}
		for _, i := range []int{2, 0, 3, 1} {
			require.False(t, seen[id(msgs[i])], "RMA-30: an ID is never used again")
			seen[id(msgs[i])] = true
			r.serves(msgs[i], octets(byte(i), 16), nil)
			synctest.Wait()
			if i == 2 {
				_, err := p.Post(Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
				require.ErrorIs(t, err, ErrNoSlot, "its completion was not polled")
			}
			end := p.ended(t)
			require.NoError(t, end.Err)
			require.EqualValues(t, i, end.Tag)
			require.Equal(t, slots[end.Tag], end.Slot)
		}
		require.Zero(t, p.Poll(make([]Completion, 4)))
		s, err := p.Post(Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
		require.NoError(t, err)
		require.Less(t, s, Slot(4))
		msg := r.receives(wire.TypeReadReq)
		require.False(t, seen[id(msg)])
		r.serves(msg, octets(1, 16), nil)
		p.ended(t)
		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
		_, err = p.Post(Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
		require.ErrorIs(t, err, ErrNoSlot)
		w.close()
	})
}

// TestRMA_45_SlotsBoundAllPortals: all Portals that draw from them.
func TestRMA_45_SlotsBoundAllPortals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		budget := NewSlots(10)
		a := start(t, plan{client: ClientConfig{Slots: budget}})
		b := start(t, plan{client: ClientConfig{Slots: budget}})
		p := a.portal(7)
		_, err := b.client.Portal(4)
		require.ErrorIs(t, err, ErrNoSlot)
		last := b.portal(3)
		require.Zero(t, budget.Free())
		require.NoError(t, p.Close())
		require.Equal(t, 7, budget.Free())
		for range 10 {
			require.NoError(t, a.portal(7).Close(), "the Client has its slots again, too")
		}
		_, err = b.client.Portal(65)
		require.ErrorIs(t, err, ErrNoSlot, "nor more than the Client has")
		_, err = b.client.Portal(0)
		require.Error(t, err)
		require.NoError(t, b.client.Close())
		require.Equal(t, 10, budget.Free(), "the end of a Client gives them back")
		require.NoError(t, last.Close())
		require.Equal(t, 10, budget.Free(), "once")
		_, err = b.client.Portal(3)
		require.ErrorIs(t, err, net.ErrClosed)
		require.Equal(t, 10, budget.Free(), "and it takes none any more, for nothing would give them back")
	})
}

// TestRMA_5_ReceivesCoverTheCredits: with all slots in use, no message ever waits for a receive.
func TestRMA_5_ReceivesCoverTheCredits(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p.client.MaxSlots, p.server.Depth = 256, 16
				p.client.Dispatch = [2]time.Duration{-1, -1}
				w := start(t, p)
				h, portal := w.opens(), w.portal(256)
				ends := make([]Completion, 256)
				var before [2]uint64 // the first message may arrive before its receive is posted
				for i, qp := range w.qps {
					before[i] = qp.Stats().ReceiveWaits
				}
				for range 5 {
					for i := range 256 {
						posts(t, portal, Command{Op: Read + Op(i%2), Handle: h, Off: uint64(i) * 64, Buf: make([]byte, 64)})
					}
					for got := 0; got < 256; {
						n, err := portal.Wait(t.Context(), ends)
						require.NoError(t, err)
						for _, e := range ends[:n] {
							require.NoError(t, e.Err)
						}
						got += n
					}
				}
				for i, qp := range w.qps {
					require.Equal(t, before[i], qp.Stats().ReceiveWaits)
				}
			})
		})
	}
}

// servesBack replaces the client of the pair by one with a Server, and connects again: the queues of the pair were
// made for one direction.
func (w *pair) servesBack(cfg ServerConfig) *Server {
	w.Helper()
	cfg.PD = w.plan.client.PD
	w.plan.client.Server = NewServer(&cfg)
	_ = w.qps[0].Abort()
	<-w.qps[1].Done() // until then the PD is in use
	w.connect()
	return w.plan.client.Server
}

// bothServe makes two clients on one QP, whose peers serve regions of the same number and key. mem is
// the memory of the client of w.
func bothServe(t *testing.T, p plan) (w *pair, theirs *Client, mem *Memory) {
	t.Helper()
	w = newPair(t, p)
	mine := w.servesBack(w.plan.server)
	mem = NewMemory(make([]byte, 1<<20))
	_, err := mine.Register(regionID, mem, &RegionOptions{Key: testKey})
	require.NoError(t, err)
	back := ClientConfig{PD: w.plan.server.PD, Server: w.server, Responder: true, Insecure: p.server.Insecure, AES256: p.server.AES256}
	other := make(chan *Client, 1)
	go func() {
		cl, err := NewClient(w.context(), w.qps[1], &back)
		require.NoError(t, err)
		other <- cl
	}()
	w.client, err = NewClient(w.context(), w.qps[0], &w.plan.client)
	require.NoError(t, err)
	return w, <-other, mem
}

// TestRMA_38_BothSidesAreClientAndServer on one QP, with the same ID and key of their regions.
func TestRMA_38_BothSidesAreClientAndServer(t *testing.T) {
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, theirs, mem := bothServe(t, p)
				var all sync.WaitGroup
				for i, cl := range []*Client{w.client, theirs} {
					all.Go(func() {
						h, err := cl.Open(w.context(), regionID, MayRead|MayWrite)
						require.NoError(t, err)
						portal, err := cl.Portal(1)
						require.NoError(t, err)
						for n := range 50 {
							want := octets(byte(i+n), 200)
							require.NoError(t, does(t, portal, Command{Op: Write, Handle: h, Off: 64, Buf: want}).Err)
							got := make([]byte, 200)
							require.NoError(t, does(t, portal, Command{Op: Read, Handle: h, Off: 64, Buf: got}).Err)
							require.Equal(t, want, got)
						}
					})
				}
				all.Wait()
				mem.View(func(b []byte) { require.Equal(t, octets(byte(50), 200), b[64:264], "what the other side wrote") })
				require.NoError(t, w.client.Close())
				require.NoError(t, theirs.Close())
				require.NoError(t, w.plan.client.PD.Close())
				require.NoError(t, w.plan.server.PD.Close())
			})
		})
	}
}

// TestRMA_39_OneConnectionEndsAlone: operations on others go on.
func TestRMA_39_OneConnectionEndsAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, plan{})
		other := w.another()
		other.plan.client.Solicitor = w.client.c.solicitor
		other.serve()
		var err error
		other.client, err = NewClient(w.context(), other.qps[0], &other.plan.client)
		require.NoError(t, err)
		h, p := w.opens(), w.portal(1)
		stuck := w.stall()
		posts(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
		stuck.wait()
		require.NoError(t, other.qps[0].Abort())
		<-other.client.Done()
		require.ErrorIs(t, other.client.Err(), net.ErrClosed)
		require.Error(t, <-other.served)
		stuck.release()
		require.NoError(t, p.ended(t).Err)
		require.NoError(t, other.client.Close())
	})
}

// TestRMA_44_OneAllocationAnOperation: and no other one.
func TestRMA_44_OneAllocationAnOperation(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	for name, p := range suites() {
		t.Run(name, func(t *testing.T) {
			p.network = "tcp"
			w := start(t, p)
			h, portal := w.opens(), w.portal(1)
			buf := octets(1, 4096)
			var one [1]Completion
			ctx := context.Background()
			for _, cmd := range []Command{{Op: Read, Handle: h, Buf: buf}, {Op: Write, Handle: h, Buf: buf}} {
				once := func() {
					_, _ = portal.Post(cmd)
					_, _ = portal.Wait(ctx, one[:])
				}
				for range 500 { // until each entry of each queue has been used
					once()
				}
				n := testing.AllocsPerRun(200, once)
				require.NoError(t, one[0].Err)
				require.LessOrEqual(t, n, 1.0, "%v", cmd.Op)
			}
		})
	}
}

// TestPostDoesNotCallBuffers: if a side is client and server, only the goroutine of its connection calls
// the methods of its Buffers. Post does not wait for them.
func TestPostDoesNotCallBuffers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, theirs, _ := bothServe(t, plan{})
		h, err := theirs.Open(w.context(), regionID, MayRead)
		require.NoError(t, err)
		portal, err := theirs.Portal(3)
		require.NoError(t, err)
		mine := w.portal(1)
		back := w.opens()

		region := w.plan.client.Server.region(regionID)
		held := &stuck{Memory: NewMemory(make([]byte, 64)), entered: make(chan struct{}), go_: make(chan struct{})}
		region.mu.Lock()
		region.buf = held
		region.mu.Unlock()
		var cmds []Command
		for range 3 {
			cmds = append(cmds, Command{Op: Read, Handle: h, Buf: make([]byte, 8)})
		}
		_, err = portal.PostAll(cmds, nil)
		require.NoError(t, err)
		held.wait()
		synctest.Wait()
		w.client.c.mu.Lock()
		require.NotEmpty(t, w.client.c.work, "other reads wait for their turn")
		w.client.c.mu.Unlock()
		posted := make(chan error)
		go func() {
			_, err := mine.Post(Command{Op: Read, Handle: back, Buf: make([]byte, 8)})
			posted <- err
		}()
		synctest.Wait()
		select {
		case err := <-posted:
			require.NoError(t, err)
		default:
			require.Fail(t, "Post waits for a Buffer")
		}
		held.release()
		require.NoError(t, mine.ended(t).Err)
		for _, end := range portal.endings(t, 1) {
			require.NoError(t, end.Err)
		}
		require.NoError(t, w.client.Close())
		require.NoError(t, theirs.Close())
	})
}
