package iwarp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// wantNoAllocs runs f, which must not allocate once everything has been used once.
func wantNoAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for range 200 {
		f()
	}
	// What the runtime does meanwhile counts, too; it rounds down.
	require.Zero(t, testing.AllocsPerRun(1000, f), "%s allocates", what)
}

// one waits for one completion.
func one(t *testing.T, cq *CQ, wcs []WC) {
	n, err := cq.Wait(context.Background(), wcs)
	if n != 1 || err != nil || wcs[0].Status != StatusSuccess {
		t.Fatal(n, err, wcs[0].Status)
	}
}

func TestNothingIsAllocatedForAnOperation(t *testing.T) {
	client, server := connect(t, pairConfig{})
	const n = 64 << 10
	_, cm := client.register(n, stag.LocalWrite, nil)
	_, sm := server.register(n, stag.LocalWrite|stag.Remote, nil)
	wcs := make([]WC, 1)
	inline := make([]byte, 64)
	wr := make([]SendWR, 1)
	local := []SGE{cm.Slice(0, n)}
	small := []SGE{cm.Slice(0, 64)}
	recv := []RecvWR{{Local: []SGE{sm.Slice(0, 64)}}}
	for what, w := range map[string]SendWR{
		"a Write":                     {Op: OpRDMAWrite, Local: local, Remote: sm.Advertise(0, n)},
		"a small Write":               {Op: OpRDMAWrite, Local: small, Remote: sm.Advertise(0, n)},
		"an inline Write":             {Op: OpRDMAWrite, Inline: inline, Remote: sm.Advertise(0, n)},
		"a Read":                      {Op: OpRDMARead, Local: local, Remote: sm.Advertise(0, n)},
		"a Send, and what takes it":   {Op: OpSend, Local: small},
		"an inline Send, and so on":   {Op: OpSend, Inline: inline},
		"an Immediate, and so on":     {Op: OpImmediate, Imm: [8]byte{1}},
		"a Write with Immediate":      {Op: OpRDMAWriteImm, Local: small, Remote: sm.Advertise(0, n)},
		"a Fetch and Add":             {Op: OpFetchAdd, Remote: sm.Advertise(0, 8), Add: 1},
		"a Compare and Swap":          {Op: OpCompareSwap, Remote: sm.Advertise(8, 8), Compare: 1, Swap: 2},
		"an unsignaled Write, a Read": {Op: OpRDMAWrite, Flags: Unsignaled, Local: small, Remote: sm.Advertise(0, n)},
	} {
		t.Run(what, func(t *testing.T) {
			wantNoAllocs(t, what, func() {
				if w.Op.takesReceive() {
					if err := server.qp.PostRecv(recv...); err != nil {
						t.Fatal(err)
					}
				}
				wr[0] = w
				if err := client.qp.PostSend(wr...); err != nil {
					t.Fatal(err)
				}
				if w.Flags&Unsignaled != 0 {
					wr[0] = SendWR{Op: OpRDMARead, Local: small, Remote: sm.Advertise(0, n)}
					if err := client.qp.PostSend(wr...); err != nil {
						t.Fatal(err)
					}
				}
				one(t, client.qp.SendCQ(), wcs)
				if w.Op.takesReceive() {
					one(t, server.qp.RecvCQ(), wcs)
				}
			})
		})
	}
}

func TestNothingIsAllocatedForAPoll(t *testing.T) {
	cq := newTestCQ(t, 64)
	wcs := make([]WC, 4)
	wc := &WC{QP: anyQP, ID: 1}
	wantNoAllocs(t, "push and poll", func() {
		cq.push(*wc)
		cq.Poll(wcs)
	})
	wantNoAllocs(t, "an empty poll", func() { cq.Poll(wcs) })
}

// TestAnEnableAllocatesItsRegion: and nothing else.
func TestAnEnableAllocatesItsRegion(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	client, _ := connect(t, pairConfig{})
	for what, wrs := range enables(t, client.pd) {
		wcs := make([]WC, 1)
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
func enables(t testing.TB, pd *PD) map[string][]SendWR {
	const n = 1 << 20
	region, err := pd.RegisterMR(make([]byte, n), lendable, nil)
	require.NoError(t, err)
	mw, err := pd.AllocMW()
	require.NoError(t, err)
	mr, err := pd.AllocMR(n, stag.LocalWrite|stag.RemoteWrite, nil)
	require.NoError(t, err)
	return map[string][]SendWR{
		"register": {
			{Op: OpRegister, Flags: Unsignaled, MR: mr, Memory: make([]byte, n), Access: stag.LocalWrite | stag.RemoteWrite},
			{Op: OpLocalInvalidate, MR: mr},
		},
		"bind": {
			{Op: OpBind, Flags: Unsignaled, MW: mw, Local: []SGE{region.Slice(0, n)}, Access: stag.RemoteWrite},
			{Op: OpLocalInvalidate, MW: mw},
		},
	}
}
