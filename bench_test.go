package iwarp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// benchPair connects two QPs over TCP on the loopback.
func benchPair(b *testing.B, o iwarp.MPAOptions) (client, server *iwarp.QP, cmem, smem *iwarp.MR) {
	b.Helper()
	const size = 1 << 20
	ctx := context.Background()
	r, err := iwarp.Open(nil)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	pd, err := r.AllocPD()
	require.NoError(b, err)
	l, err := r.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(b, err)
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			server, err = cr.Accept(ctx, &iwarp.QPConfig{PD: pd, MPA: o, RecvDepth: 1024})
		}
		accepted <- err
	}()
	client, err = r.Dial(ctx, "tcp", l.Addr().String(), &iwarp.QPConfig{PD: pd, MPA: o})
	require.NoError(b, err)
	require.NoError(b, <-accepted)
	require.NoError(b, l.Close())
	cmem, err = pd.RegisterMR(make([]byte, size), stag.LocalWrite|stag.RemoteWrite, nil)
	require.NoError(b, err)
	smem, err = pd.RegisterMR(make([]byte, size), stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	require.NoError(b, err)
	return client, server, cmem, smem
}

// benchPosts keeps the send queue full of wr until b.N of them are complete.
func benchPosts(b *testing.B, qp *iwarp.QP, wr iwarp.SendWR, depth int) {
	wrs, wcs := make([]iwarp.SendWR, depth), make([]iwarp.WC, depth)
	for i := range wrs {
		wrs[i] = wr
	}
	b.ResetTimer()
	for posted, done := 0, 0; done < b.N; {
		n := min(depth-(posted-done), b.N-posted)
		if err := qp.PostSend(wrs[:n]...); err != nil {
			b.Fatal(err)
		}
		posted += n
		got, err := qp.SendCQ().Wait(context.Background(), wcs)
		if err != nil || wcs[0].Status != iwarp.StatusSuccess {
			b.Fatal(err, wcs[0].Status)
		}
		done += got
	}
	b.StopTimer()
}

var sizes = []struct {
	name string
	n    int
}{{"64B", 64}, {"4KiB", 4 << 10}, {"64KiB", 64 << 10}, {"1MiB", 1 << 20}}

func BenchmarkWrite(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) { benchMove(b, iwarp.OpRDMAWrite, s.n, iwarp.MPAOptions{}) })
	}
}

func BenchmarkWriteNoCRC(b *testing.B) {
	b.Run("1MiB", func(b *testing.B) { benchMove(b, iwarp.OpRDMAWrite, 1<<20, iwarp.MPAOptions{NoCRC: true}) })
}

func BenchmarkRead(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) { benchMove(b, iwarp.OpRDMARead, s.n, iwarp.MPAOptions{}) })
	}
}

func benchMove(b *testing.B, op iwarp.Op, n int, o iwarp.MPAOptions) {
	client, _, cmem, smem := benchPair(b, o)
	b.SetBytes(int64(n))
	b.ReportAllocs()
	benchPosts(b, client, iwarp.SendWR{Op: op, Local: []iwarp.SGE{cmem.Slice(0, n)}, Remote: smem.Advertise(0, n)}, 32)
}

// takeSends keeps posting receives of 64 octets until b.N messages have come.
func takeSends(b *testing.B, server *iwarp.QP, smem *iwarp.MR) (done chan struct{}) {
	const depth = 512
	recvs, wcs := make([]iwarp.RecvWR, depth), make([]iwarp.WC, depth)
	for i := range recvs {
		recvs[i].Local = []iwarp.SGE{smem.Slice(i*64, 64)}
	}
	require.NoError(b, server.PostRecv(recvs...))
	done = make(chan struct{})
	go func() {
		defer close(done)
		for got := 0; got < b.N; {
			n, err := server.RecvCQ().Wait(context.Background(), wcs)
			if err != nil || server.PostRecv(recvs[:n]...) != nil {
				return
			}
			got += n
		}
	}()
	b.SetBytes(64)
	b.ReportAllocs()
	return done
}

// BenchmarkSend64 sends messages of 64 octets to a peer that keeps posting receives.
func BenchmarkSend64(b *testing.B) {
	client, server, cmem, smem := benchPair(b, iwarp.MPAOptions{})
	done := takeSends(b, server, smem)
	benchPosts(b, client, iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{cmem.Slice(0, 64)}}, 128)
	<-done
}

// BenchmarkSendBatch64 is BenchmarkSend64 with 64 messages a post, of which one is
// signaled.
func BenchmarkSendBatch64(b *testing.B) {
	client, server, cmem, smem := benchPair(b, iwarp.MPAOptions{})
	done := takeSends(b, server, smem)
	wrs, wcs := make([]iwarp.SendWR, 64), make([]iwarp.WC, 2)
	for i := range wrs {
		wrs[i] = iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{cmem.Slice(0, 64)}}
	}
	b.ResetTimer()
	for posted := 0; posted < b.N; {
		n := min(len(wrs), b.N-posted)
		wrs[n-1].Flags = 0
		if err := client.PostSend(wrs[:n]...); err != nil {
			b.Fatal(err)
		}
		posted += n
		if _, err := client.SendCQ().Wait(context.Background(), wcs); err != nil || wcs[0].Status != iwarp.StatusSuccess {
			b.Fatal(err, wcs[0].Status)
		}
	}
	<-done
	b.StopTimer()
}

// BenchmarkPingPong64 is one Read of 64 octets at a time.
func BenchmarkPingPong64(b *testing.B) {
	client, _, cmem, smem := benchPair(b, iwarp.MPAOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if err := client.RDMARead(context.Background(), cmem.Slice(0, 64), smem.Advertise(0, 64)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCQPoll(b *testing.B) {
	cq := iwarp.NewCQ(nil, 64)
	wc, wcs := &iwarp.WC{QP: anyQP, ID: 1}, make([]iwarp.WC, 4)
	b.ReportAllocs()
	for b.Loop() {
		cq.Push(*wc)
		cq.Poll(wcs)
	}
}

// BenchmarkEnable is a registration or a binding of 1 MiB, and the invalidation that ends
// it.
func BenchmarkEnable(b *testing.B) {
	qp, _, _, _ := benchPair(b, iwarp.MPAOptions{})
	for what, wrs := range enables(b, qp.PD()) {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			var wcs [1]iwarp.WC
			for b.Loop() {
				if err := qp.PostSend(wrs...); err != nil {
					b.Fatal(err)
				}
				if n, err := qp.SendCQ().Wait(context.Background(), wcs[:]); n != 1 || err != nil || wcs[0].Status != iwarp.StatusSuccess {
					b.Fatal(n, err, wcs[0].Status)
				}
			}
		})
	}
}
