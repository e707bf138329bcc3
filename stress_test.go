package iwarp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// stressTime bounds each of the longer tests.
func stressTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("IWARP_STRESS")); err == nil {
		return d
	}
	if testing.Short() {
		return 100 * time.Millisecond
	}
	return 400 * time.Millisecond
}

// TestARCH_22_ManyGoroutinesOnOneQP: eight on each side, with all kinds of work, in both directions.
func TestARCH_22_ManyGoroutinesOnOneQP(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		t.Run(network, func(t *testing.T) {
			qc := iwarp.QPConfig{SendDepth: 16, RecvDepth: 64, ORD: 4, IRD: 4, RNRWait: wiretest.Patience}
			client, server := connect(t, pairConfig{network: network, client: qc, server: qc})
			ctx := testContext(t)
			const each, rounds, slice = 8, 60, 5000
			var all sync.WaitGroup
			var received [2]atomic.Int32
			for i, s := range []*side{client, server} {
				peer := []*side{server, client}[i]
				_, theirs := peer.register(each*slice, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
				for g := range each {
					b, mr := s.register(3*slice, stag.LocalWrite, nil)
					in, inMR := s.register(8, stag.LocalWrite, nil)
					all.Go(func() {
						at := theirs.Advertise(g*slice, slice)
						for r := range rounds {
							for j := range slice {
								b[j] = byte(r + j + g)
							}
							if !fine(t, s.qp.RDMAWrite(ctx, at, mr.Slice(0, slice))) ||
								!fine(t, s.qp.RDMARead(ctx, mr.Slice(slice, slice), at)) ||
								!fine(t, s.qp.Send(ctx, mr.Slice(0, 8))) {
								return
							}
							if !bytes.Equal(b[:slice], b[slice:2*slice]) {
								t.Error("a Read after a Write returns what was written")
								return
							}
						}
					})
					all.Go(func() {
						for range rounds {
							n, err := s.qp.Recv(ctx, inMR.Slice(0, 8))
							if !fine(t, err) {
								return
							}
							if n != 8 || in[1] != in[0]+1 {
								t.Error("a message is whole")
								return
							}
							received[i].Add(1)
						}
					})
				}
			}
			all.Wait()
			require.EqualValues(t, each*rounds, received[0].Load())
			require.EqualValues(t, each*rounds, received[1].Load())
			require.NoError(t, client.qp.Close())
			<-server.qp.Done()
			require.NoError(t, server.qp.Err())
		})
	}
}

func fine(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// TestVERBS_44_46_49_EachWorkRequestCompletesOnce: whatever ends the QP, and whenever.
func TestVERBS_44_46_49_EachWorkRequestCompletesOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for end := time.Now().Add(stressTime()); time.Now().Before(end); {
		killed(t, r)
	}
}

// killed posts work on both sides, ends the connection in a random way, and counts completions.
func killed(t *testing.T, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), wiretest.Patience)
	defer cancel()
	qc := iwarp.QPConfig{SendDepth: 64, RecvDepth: 64, ORD: 2, RNRWait: time.Millisecond}
	client, server := connect(t, pairConfig{client: qc, server: qc})
	var src, dst [2]*iwarp.MR // each side sends from and is read from src; dst takes what comes
	for i, s := range []*side{client, server} {
		_, src[i] = s.register(1<<16, stag.RemoteRead, nil)
		_, dst[i] = s.register(1<<16, stag.LocalWrite|stag.RemoteWrite, nil)
	}
	type book struct{ sends, recvs []uint64 }
	var books [2]book
	var all sync.WaitGroup
	for i, s := range []*side{client, server} {
		seed := r.Uint64()
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			for id := uint64(1); ; id++ {
				wr := iwarp.SendWR{ID: id, Op: iwarp.OpSend, Local: []iwarp.SGE{src[i].Slice(0, r.IntN(1<<16))}}
				switch r.IntN(3) {
				case 0:
					wr.Op, wr.Remote = iwarp.OpRDMAWrite, dst[1-i].Advertise(0, 1<<16)
				case 1:
					wr = iwarp.SendWR{ID: id, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{dst[i].Slice(0, r.IntN(1<<16))}, Remote: src[1-i].Advertise(0, 1<<16)}
				}
				switch err := s.qp.PostSend(wr); {
				case err == nil:
					books[i].sends = append(books[i].sends, id)
				case !errors.Is(err, iwarp.ErrQueueFull):
					return
				}
				switch err := s.qp.PostRecv(iwarp.RecvWR{ID: id, Local: []iwarp.SGE{dst[i].Slice(0, 1<<16)}}); {
				case err == nil:
					books[i].recvs = append(books[i].recvs, id)
				case !errors.Is(err, iwarp.ErrQueueFull):
					return
				}
			}
		})
	}
	var done [2]book
	for i, s := range []*side{client, server} {
		for q, cq := range []*iwarp.CQ{s.qp.SendCQ(), s.qp.RecvCQ()} {
			to := []*[]uint64{&done[i].sends, &done[i].recvs}[q]
			all.Go(func() {
				wcs := make([]iwarp.WC, 16)
				for {
					over := false
					select {
					case <-s.qp.Done():
						over = true
					default:
					}
					short, stop := context.WithTimeout(ctx, time.Millisecond)
					n, _ := cq.Wait(short, wcs)
					stop()
					*to = append(*to, ids(wcs[:n])...)
					if over && n == 0 {
						return
					}
				}
			})
		}
	}
	time.Sleep(time.Duration(r.IntN(8000)) * time.Microsecond)
	victim := []*side{client, server}[r.IntN(2)]
	switch r.IntN(5) {
	case 0:
		require.NoError(t, victim.qp.Abort())
	case 1:
		_ = victim.qp.Close()
		_ = victim.qp.Abort()
	case 2:
		require.NoError(t, victim.rnic.Close())
	case 3:
		bad := iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Inline: []byte{1}, Remote: remote}
		if r.IntN(2) == 0 {
			bad = iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Flags: iwarp.Unsignaled, Invalidate: 1}
		}
		for errors.Is(victim.qp.PostSend(bad), iwarp.ErrQueueFull) {
			time.Sleep(100 * time.Microsecond)
		}
	case 4:
		require.NoError(t, src[0].Invalidate(ctx))
		_ = client.qp.Abort()
	}
	<-client.qp.Done()
	<-server.qp.Done()
	all.Wait()
	for i := range books {
		require.Equal(t, books[i].sends, posted(done[i].sends), "each once, and in post order")
		require.Equal(t, books[i].recvs, done[i].recvs, "receives, too")
	}
}

// posted leaves out the work requests meant to end the QP, which have no ID.
func posted(ids []uint64) (kept []uint64) {
	for _, id := range ids {
		if id != 0 {
			kept = append(kept, id)
		}
	}
	return kept
}

// TestRDMAP_125_RegionIsInvalidatedWhileWritesStreamIn: when Invalidate has returned, nothing more is placed.
func TestRDMAP_125_RegionIsInvalidatedWhileWritesStreamIn(t *testing.T) {
	revokedWhileWritesStreamIn(t, func(server *side, mem []byte) (iwarp.RemoteBuffer, []func() error) {
		mr, err := server.pd.RegisterMR(mem, stag.LocalWrite|stag.RemoteWrite, nil)
		require.NoError(t, err)
		return mr.Advertise(0, len(mem)), []func() error{
			func() error { return mr.Invalidate(testContext(t)) },
			mr.Close,
		}
	})
}

func TestVERBS_21_WindowIsRevokedWhileWritesStreamIn(t *testing.T) {
	revokedWhileWritesStreamIn(t, func(server *side, mem []byte) (iwarp.RemoteBuffer, []func() error) {
		mr, err := server.pd.RegisterMR(mem, lendable, nil)
		require.NoError(t, err)
		mw := server.lends(server.qp, mr, 0, len(mem), stag.RemoteWrite, 0)
		return mw.Advertise(0, len(mem)), []func() error{
			func() error { return mw.Invalidate(testContext(t)) },
			mw.Close,
			func() error {
				_, err := doOne(testContext(t), server.qp, iwarp.SendWR{Op: iwarp.OpLocalInvalidate, MW: mw})
				return err
			},
		}
	})
}

// revokedWhileWritesStreamIn makes the server lend memory and revoke it, in one of the ways that lend returns, while the
// client writes to it.
func revokedWhileWritesStreamIn(t *testing.T, lend func(server *side, mem []byte) (iwarp.RemoteBuffer, []func() error)) {
	for end := time.Now().Add(stressTime()); time.Now().Before(end); {
		client, server := connect(t, pairConfig{})
		const n = 256 << 10
		src, cm := client.register(n, 0, nil)
		fillRandom(src)
		dst := make([]byte, n)
		at, revoke := lend(server, dst)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for client.qp.RDMAWrite(context.Background(), at, cm.Slice(0, n)) == nil {
			}
		}()
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		require.NoError(t, revoke[rand.IntN(len(revoke))]())
		clear(dst) // under -race this also proves that nothing accesses it any more
		<-stopped
		require.Equal(t, make([]byte, n), dst, "not one octet after the return")
		<-client.qp.Done()
		require.ErrorIs(t, client.qp.Err(), iwarp.ErrInvalidSTag)
	}
}

// TestWindowsAreBoundWhileTheQPEnds: a window that was bound, or whose bind was queued,
// is bound to no QP afterwards.
func TestWindowsAreBoundWhileTheQPEnds(t *testing.T) {
	for end := time.Now().Add(stressTime() / 2); time.Now().Before(end); {
		client, server := connect(t, pairConfig{network: "pipe"})
		_, mr := server.register(64, lendable, nil)
		windows := make([]*iwarp.MW, 4)
		var binding sync.WaitGroup
		for i := range windows {
			mw, err := server.pd.AllocMW()
			require.NoError(t, err)
			windows[i] = mw
			binding.Go(func() {
				turns := []iwarp.SendWR{
					{Op: iwarp.OpBind, Flags: iwarp.Unsignaled, MW: mw, Local: []iwarp.SGE{mr.Slice(0, 64)}, Access: stag.RemoteRead},
					{Op: iwarp.OpLocalInvalidate, Flags: iwarp.Unsignaled, MW: mw},
				}
				for i := 0; ; {
					switch err := server.qp.PostSend(turns[i%2]); {
					case err == nil:
						i++
					case !errors.Is(err, iwarp.ErrQueueFull):
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
		require.NoError(t, client.qp.Abort())
		<-server.qp.Done()
		binding.Wait()
		for _, mw := range windows {
			require.False(t, mw.Valid())
		}
		require.NoError(t, mr.Close(), "no window is bound to it")
		for _, mw := range windows {
			require.NoError(t, mw.Close())
		}
		require.NoError(t, server.pd.Close(), "and nothing is left")
	}
}

// TestRegionChangesWhileAnotherPeerReadsIt: one QP continually writes a region while another reads it. Responses are
// staged, so that no CRC can be wrong.
func TestRegionChangesWhileAnotherPeerReadsIt(t *testing.T) {
	for _, network := range []string{"tcp", "sctp+udp"} {
		t.Run(network, func(t *testing.T) { regionChanges(t, network) })
	}
}

// regionChanges lets the region change for a while, and until it was read: on a busy machine a Read may start late.
func regionChanges(t *testing.T, network string) {
	owner, writer, reader := newSide(t, nil), newSide(t, nil), newSide(t, nil)
	writer.connect(owner, pairConfig{network: network})
	first := owner.qp
	reader.connect(owner, pairConfig{network: network})
	const n = 200_000
	_, mr := owner.register(n, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var reads atomic.Int64
	end := time.Now().Add(stressTime())
	goesOn := func() bool { return time.Now().Before(end) || reads.Load() == 0 }
	var all sync.WaitGroup
	all.Go(func() {
		b, wm := writer.register(n, 0, nil)
		for i := uint64(0); goesOn(); i++ {
			for at := 0; at < n; at += 8 {
				binary.LittleEndian.PutUint64(b[at:], i)
			}
			if !fine(t, writer.qp.RDMAWrite(ctx, mr.Advertise(0, n), wm.Slice(0, n))) {
				return
			}
		}
	})
	all.Go(func() {
		_, rm := reader.register(n, stag.LocalWrite, nil)
		for ; goesOn(); reads.Add(1) {
			if !fine(t, reader.qp.RDMARead(ctx, rm.Slice(0, n), mr.Advertise(0, n))) {
				return
			}
		}
	})
	_, mirror := reader.register(n, stag.LocalWrite|stag.RemoteWrite, nil)
	all.Go(func() { // and the owner sends it, too, while it changes
		for goesOn() {
			if !fine(t, owner.qp.RDMAWrite(ctx, mirror.Advertise(0, n), mr.Slice(0, n))) {
				return
			}
		}
	})
	all.Wait()
	require.NotZero(t, reads.Load())
	for _, qp := range []*iwarp.QP{first, owner.qp, writer.qp, reader.qp} {
		require.Equal(t, iwarp.StateRTS, qp.State())
	}
}

// TestRNICCloseEndsEverything: fifty QPs are in all states, and nothing remains. The package's leak check covers
// goroutines.
func TestRNICCloseEndsEverything(t *testing.T) {
	slowly := &iwarp.Config{CloseTimeout: time.Minute}
	client, server := newSide(t, slowly), newSide(t, slowly)
	const n = 1 << 20
	_, out := client.register(n, 0, nil)
	_, open := server.register(n, stag.RemoteRead, nil)
	var qps []*iwarp.QP
	for i := range 50 {
		client.connect(server, pairConfig{server: iwarp.QPConfig{RNRWait: time.Minute}})
		qp := client.qp
		qps = append(qps, qp, server.qp)
		_, in := client.register(n, stag.LocalWrite, nil)
		_, target := server.register(n, stag.LocalWrite|stag.RemoteWrite, nil)
		switch i % 7 {
		case 0: // idle
		case 1: // its message finds no receive
			require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("wait")}))
		case 2: // much work is outstanding
			for range 20 {
				require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{out.Slice(0, n)}, Remote: target.Advertise(0, n)}))
			}
		case 3: // Reads are outstanding
			for range 20 {
				require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{in.Slice(0, n)}, Remote: open.Advertise(0, n)}))
			}
		case 4: // about to terminate
			require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("x"), Remote: remote}))
		case 5: // closing
			go func() { _ = qp.Close() }()
		case 6: // a goroutine waits
			go func() {
				_, err := qp.Recv(context.Background(), in.Slice(0, 8))
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}()
		}
	}
	start := time.Now()
	require.NoError(t, server.rnic.Close())
	require.NoError(t, client.rnic.Close())
	require.Less(t, time.Since(start), 30*time.Second)
	for _, qp := range qps {
		select {
		case <-qp.Done():
		default:
			require.Fail(t, "a QP lives on")
		}
	}
	require.Zero(t, client.rnic.InUse().MaxQP)
	require.Zero(t, server.rnic.InUse().MaxQP)
	require.NoError(t, out.Close(), "regions can be closed behind the RNIC")
}
