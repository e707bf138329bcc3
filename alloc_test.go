package iwarp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/stag"
)

// wantNoAllocs runs f, which must not allocate once everything has been used once.
func wantNoAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	for range 200 {
		f()
	}
	// What the runtime does meanwhile counts, too; it rounds down.
	require.Zero(t, testing.AllocsPerRun(1000, f), "%s allocates", what)
}

// one waits for one completion.
func one(t *testing.T, cq *iwarp.CQ, wcs []iwarp.WC) {
	n, err := cq.Wait(context.Background(), wcs)
	if n != 1 || err != nil || wcs[0].Status != iwarp.StatusSuccess {
		t.Fatal(n, err, wcs[0].Status)
	}
}

func TestNothingIsAllocatedForAnOperation(t *testing.T) {
	client, server := connect(t, pairConfig{clientR: &iwarp.Config{Latency: true}}) // which allocates nothing either
	const n = 64 << 10
	_, cm := client.register(n, stag.LocalWrite, nil)
	_, sm := server.register(n, stag.LocalWrite|stag.Remote, nil)
	wcs := make([]iwarp.WC, 1)
	inline := make([]byte, 64)
	wr := make([]iwarp.SendWR, 1)
	local := []iwarp.SGE{cm.Slice(0, n)}
	small := []iwarp.SGE{cm.Slice(0, 64)}
	recv := []iwarp.RecvWR{{Local: []iwarp.SGE{sm.Slice(0, 64)}}}
	for what, w := range map[string]iwarp.SendWR{
		"a Write":                     {Op: iwarp.OpRDMAWrite, Local: local, Remote: sm.Advertise(0, n)},
		"a small Write":               {Op: iwarp.OpRDMAWrite, Local: small, Remote: sm.Advertise(0, n)},
		"an inline Write":             {Op: iwarp.OpRDMAWrite, Inline: inline, Remote: sm.Advertise(0, n)},
		"a Read":                      {Op: iwarp.OpRDMARead, Local: local, Remote: sm.Advertise(0, n)},
		"a Send, and what takes it":   {Op: iwarp.OpSend, Local: small},
		"an inline Send, and so on":   {Op: iwarp.OpSend, Inline: inline},
		"an Immediate, and so on":     {Op: iwarp.OpImmediate, Imm: [8]byte{1}},
		"a Write with Immediate":      {Op: iwarp.OpRDMAWriteImm, Local: small, Remote: sm.Advertise(0, n)},
		"a Fetch and Add":             {Op: iwarp.OpFetchAdd, Remote: sm.Advertise(0, 8), Add: 1},
		"a Compare and Swap":          {Op: iwarp.OpCompareSwap, Remote: sm.Advertise(8, 8), Compare: 1, Swap: 2},
		"an unsignaled Write, a Read": {Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: small, Remote: sm.Advertise(0, n)},
	} {
		t.Run(what, func(t *testing.T) {
			wantNoAllocs(t, what, func() {
				if w.Op.TakesReceive() {
					if err := server.qp.PostRecv(recv...); err != nil {
						t.Fatal(err)
					}
				}
				wr[0] = w
				if err := client.qp.PostSend(wr...); err != nil {
					t.Fatal(err)
				}
				if w.Flags&iwarp.Unsignaled != 0 {
					wr[0] = iwarp.SendWR{Op: iwarp.OpRDMARead, Local: small, Remote: sm.Advertise(0, n)}
					if err := client.qp.PostSend(wr...); err != nil {
						t.Fatal(err)
					}
				}
				one(t, client.qp.SendCQ(), wcs)
				if w.Op.TakesReceive() {
					one(t, server.qp.RecvCQ(), wcs)
				}
			})
		})
	}
}

func TestNothingIsAllocatedForAPoll(t *testing.T) {
	cq := newTestCQ(t, 64)
	wcs := make([]iwarp.WC, 4)
	wc := &iwarp.WC{QP: anyQP, ID: 1}
	wantNoAllocs(t, "push and poll", func() {
		cq.Push(*wc)
		cq.Poll(wcs)
	})
	wantNoAllocs(t, "an empty poll", func() { cq.Poll(wcs) })
}

// TestAnEnableAllocatesItsRegion and nothing else.
func TestAnEnableAllocatesItsRegion(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	client, _ := connect(t, pairConfig{})
	for what, wrs := range enables(t, client.pd) {
		wcs := make([]iwarp.WC, 1)
		f := func() {
			if err := client.qp.PostSend(wrs...); err != nil {
				t.Fatal(err)
			}
			one(t, client.qp.SendCQ(), wcs)
		}
		for range 200 {
			f()
		}
		require.EqualValues(t, 1, testing.AllocsPerRun(1000, f), what)
	}
}

// enables are a registration and a binding, each with its invalidation.
func enables(t testing.TB, pd *iwarp.PD) map[string][]iwarp.SendWR {
	const n = 1 << 20
	region, err := pd.RegisterMR(make([]byte, n), lendable, nil)
	require.NoError(t, err)
	mw, err := pd.AllocMW()
	require.NoError(t, err)
	mr, err := pd.AllocMR(n, stag.LocalWrite|stag.RemoteWrite, nil)
	require.NoError(t, err)
	return map[string][]iwarp.SendWR{
		"register": {
			{Op: iwarp.OpRegister, Flags: iwarp.Unsignaled, MR: mr, Memory: make([]byte, n), Access: stag.LocalWrite | stag.RemoteWrite},
			{Op: iwarp.OpLocalInvalidate, MR: mr},
		},
		"bind": {
			{Op: iwarp.OpBind, Flags: iwarp.Unsignaled, MW: mw, Local: []iwarp.SGE{region.Slice(0, n)}, Access: stag.RemoteWrite},
			{Op: iwarp.OpLocalInvalidate, MW: mw},
		},
	}
}
