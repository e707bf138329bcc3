package iwarp_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// RDMA Commit as an application sees it.

// A medium is a Flusher that does what the test says.
type medium struct {
	mu      sync.Mutex
	flushed []commit.Range
	err     error
	hold    chan struct{} // not nil: Flush waits for it
	begun   bool          // there was a Flush
}

func (m *medium) Flush(_ context.Context, off, n int64) error {
	m.mu.Lock()
	hold := m.hold
	m.begun = true
	m.mu.Unlock()
	if hold != nil {
		<-hold
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushed = append(m.flushed, commit.Range{Off: off, Len: n})
	return m.err
}

func (m *medium) fails(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *medium) hasBegun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun
}

func (m *medium) ranges() []commit.Range {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.flushed
}

var committing = iwarp.QPConfig{Commit: &iwarp.CommitOptions{}}

func committers(t *testing.T) (client, server *side) {
	return connect(t, pairConfig{client: committing, server: committing})
}

func TestCMT_5_13_52_CommitOfAFile(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	f, err := commit.OpenFile(filepath.Join(t.TempDir(), "log"), &commit.FileOptions{Size: 1 << 20})
	require.NoError(t, err)
	mr, err := server.pd.RegisterBuffer(f, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: f})
	require.NoError(t, err)
	mem, src := client.register(64<<10, stag.LocalWrite, nil)
	copy(mem, "a record")
	require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 64<<10), src.Slice(0, 64<<10)))
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 64<<10)))
	require.EqualValues(t, 1, f.Syncs())
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 64<<10)))
	require.EqualValues(t, 1, f.Syncs(), "nothing was written since")
	require.Equal(t, iwarp.Traffic{Messages: 2, Octets: 2 * 20}, client.qp.Stats().Sent.CommitRequest)
	require.Equal(t, iwarp.Traffic{Messages: 2, Octets: 2 * 8}, client.qp.Stats().Received.CommitResponse)
	require.EqualValues(t, 2, server.qp.Stats().CommitsServed)
	follow := iwarp.FollowOn{At: mr.Advertise(1<<20-8, 8)}
	binary.BigEndian.PutUint64(follow.Value[:], 42)
	require.NoError(t, client.qp.CommitThen(ctx, follow, mr.Advertise(0, 64<<10)))
	require.NoError(t, client.qp.CommitThen(ctx, follow), "a follow-on alone")
	got := make([]byte, 8)
	_, err = f.ReadAt(got, 1<<20-8)
	require.NoError(t, err)
	require.EqualValues(t, 42, binary.NativeEndian.Uint64(got), "the byte order of the host")
	require.NoError(t, client.qp.Close())
	<-server.qp.Done()
	require.NoError(t, mr.Close())
	require.NoError(t, f.Close())
}

func TestCMT_20_29_30_52_FailedCommitLeavesTheQP(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	var m medium
	_, mr := server.register(64, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: &m})
	_, local := client.register(64, stag.LocalWrite, nil)
	require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 8), local.Slice(0, 8)))
	require.NoError(t, client.qp.RDMARead(ctx, local.Slice(0, 8), mr.Advertise(0, 8)))
	require.Empty(t, m.ranges(), "a Write alone makes nothing durable")

	m.fails(syscall.EIO)
	err := client.qp.Commit(ctx, mr.Advertise(0, 8), mr.Advertise(8, 8))
	require.ErrorIs(t, err, commit.ErrDataLost)
	require.NotErrorIs(t, err, net.ErrClosed, "the QP is as it was")
	var e *commit.Error
	require.ErrorAs(t, err, &e)
	require.Zero(t, e.Status.Region())
	require.NoError(t, client.qp.PostSend(iwarp.SendWR{ID: 5, Op: iwarp.OpCommit, Flags: iwarp.Unsignaled, Regions: []iwarp.RemoteBuffer{mr.Advertise(0, 8)}}))
	wcs := make([]iwarp.WC, 1)
	n, err := client.qp.SendCQ().Wait(ctx, wcs)
	require.NoError(t, err)
	require.Equal(t, []iwarp.WC{{ID: 5, QP: client.qp, Op: iwarp.OpCommit, Status: iwarp.StatusRemoteOp, CommitStatus: uint32(commit.DataLost)}}, wcs[:n],
		"a failure completes also if it is Unsignaled")
	require.Equal(t, iwarp.StateRTS, client.qp.State())
	m.fails(nil)
	require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(0, 8)), commit.ErrDataLost, "it was not written again")
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(8, 8)), "the second region was not flushed, and is not lost")
	require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 8), local.Slice(0, 8)))
	require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 8)))
	require.NoError(t, client.qp.RDMARead(ctx, local.Slice(0, 8), mr.Advertise(0, 8)))
}

func TestCMT_41_CommitOfAnyRange(t *testing.T) {
	server := iwarp.QPConfig{Commit: &iwarp.CommitOptions{Negotiate: true, MaxRegions: 2, MaxOctets: 20}}
	client, peer := connect(t, pairConfig{client: iwarp.QPConfig{Commit: &iwarp.CommitOptions{Negotiate: true}}, server: server})
	ctx := testContext(t)
	var m medium
	_, mr := peer.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m, BaseTO: 1 << 40})
	at := mr.Advertise(0, 64)
	regions, octets, ok := client.qp.CommitLimits()
	require.True(t, ok)
	require.Equal(t, []uint64{2, 20}, []uint64{uint64(regions), octets}, "what the peer has offered")
	require.NoError(t, client.qp.CommitRange(ctx, at.STag, at.TO+3, 50))
	require.Equal(t, []commit.Range{{Off: 3, Len: 20}, {Off: 23, Len: 20}, {Off: 43, Len: 10}}, m.ranges(), "below the limits")
	require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(0, 21)), iwarp.ErrLimit)
	require.ErrorIs(t, client.qp.Commit(ctx, at, at, at), iwarp.ErrLimit)
	require.ErrorIs(t, client.qp.CommitRange(ctx, at.STag, 1<<63, 1<<63+1), iwarp.ErrBounds)
	require.NoError(t, client.qp.CommitRange(ctx, at.STag, 0, 0))
	_, last := peer.register(8, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{BaseTO: math.MaxUint64 - 8})
	require.NoError(t, client.qp.CommitRange(ctx, last.STag(), math.MaxUint64-8, 8), "as far as a region may reach")

	silent := iwarp.QPConfig{Commit: &iwarp.CommitOptions{MaxRegions: 100, MaxOctets: 20}}
	client, _ = connect(t, pairConfig{client: silent, server: silent})
	regions, octets, ok = client.qp.CommitLimits()
	require.True(t, ok)
	require.Equal(t, []uint64{64, math.MaxUint64}, []uint64{uint64(regions), octets}, "the defaults, where the peer has offered nothing")

	bubble(t, func(t *testing.T) {
		k := newTalk(t, committing, nil)
		errs := make(chan error, 1)
		go func() { errs <- k.qp.CommitRange(testContext(t), 7, 5, 1<<32+9) }()
		want := binary.BigEndian.AppendUint32(wiretest.Untagged(0x41, 0x4c, 0, 1, 1, 0, ""), 1)
		for _, g := range []commit.Region{{STag: 7, TO: 5, Len: 1<<32 - 1}, {STag: 7, TO: 5 + 1<<32 - 1, Len: 10}} {
			want = g.Append(want)
		}
		require.Equal(t, want, k.p.Segment(), "a region has less than 4 GiB")
		k.p.Send(wiretest.Untagged(0x41, 0x4d, 0, 3, 1, 0, "\x00\x00\x00\x01\x00\x00\x00\x00"))
		require.NoError(t, <-errs)
		require.NoError(t, k.qp.Abort())
	})
}

func TestCMT_49_58_Negotiation(t *testing.T) {
	offers := &iwarp.CommitOptions{Negotiate: true, MaxRegions: 8}
	for what, x := range map[string]struct {
		client, server *iwarp.CommitOptions
		ok             bool
	}{
		"both":            {offers, offers, true},
		"only the client": {offers, nil, false},
		"only the server": {nil, offers, false},
		"by other means":  {&iwarp.CommitOptions{}, &iwarp.CommitOptions{}, true},
	} {
		t.Run(what, func(t *testing.T) {
			client, server := connect(t, pairConfig{
				client: iwarp.QPConfig{Commit: x.client, PrivateData: []byte("client")},
				server: iwarp.QPConfig{Commit: x.server, PrivateData: []byte("server")},
			})
			if x.client != nil {
				_, _, ok := client.qp.CommitLimits()
				require.Equal(t, x.ok, ok)
				require.Equal(t, "server", string(client.qp.PrivateData()), "the offer is no part of the private data")
			}
			if x.server != nil {
				_, _, ok := server.qp.CommitLimits()
				require.Equal(t, x.ok, ok)
			}
			require.Equal(t, "client", string(server.qp.PrivateData()))
			if !x.ok {
				require.ErrorIs(t, client.qp.Commit(testContext(t), iwarp.RemoteBuffer{}), iwarp.ErrUnsupported)
				require.ErrorIs(t, client.qp.CommitRange(testContext(t), 1, 0, 1), iwarp.ErrUnsupported)
			}
		})
	}
	client, _ := connect(t, pairConfig{
		client: iwarp.QPConfig{Commit: &iwarp.CommitOptions{Negotiate: true, MaxRegions: 3}},
		server: iwarp.QPConfig{Commit: &iwarp.CommitOptions{Negotiate: true, MaxRegions: 1000}},
	})
	regions, _, _ := client.qp.CommitLimits()
	require.Equal(t, 3, regions, "what both ends allow")
	client = newSide(t, nil)
	_, err := client.rnic.Dial(testContext(t), "tcp", "127.0.0.1:1", &iwarp.QPConfig{PD: client.pd, Commit: &iwarp.CommitOptions{MaxRegions: 1 << 16}})
	require.ErrorContains(t, err, "MaxRegions")
}

// TestCMT_49_OfferOnTheWire is sent in front of the private data if it is asked for, and only then.
func TestCMT_49_OfferOnTheWire(t *testing.T) {
	const depths = " 8010 c010 "
	for want, o := range map[string]*iwarp.CommitOptions{
		"50 02 0006" + depths + "6869":                                            {MaxRegions: 8},
		"50 02 001a" + depths + "636f6d6d69742d303000 0008 0000000000001234 6869": {Negotiate: true, MaxRegions: 8, MaxOctets: 0x1234},
	} {
		bubble(t, func(t *testing.T) {
			s := newSide(t, nil)
			_, err := s.rnic.Dial(testContext(t), "pipe", wiretest.Serve(t, func(p *wiretest.Peer) {
				p.WantRequest(want)
				p.Reply("60 01 0000")
				p.WantEOF("Dial closes what is rejected")
			}), &iwarp.QPConfig{PD: s.pd, Commit: o, PrivateData: []byte("hi")})
			require.ErrorIs(t, err, iwarp.ErrRejected)
		})
	}
}

func TestCMT_12_50_ProbingAPeerThatDoesNotKnowCommit(t *testing.T) {
	client, server := connect(t, pairConfig{client: committing})
	_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, nil)
	err := client.qp.Commit(testContext(t), mr.Advertise(0, 8))
	var te *iwarp.TerminateError
	require.ErrorAs(t, err, &te)
	require.Equal(t, []uint8{0, 2, 6}, []uint8{te.Layer, te.Type, te.Code})
	require.True(t, te.Remote)
}

func TestCMT_18_19_PlainMemory(t *testing.T) {
	for _, strict := range []bool{false, true} {
		client, server := connect(t, pairConfig{client: committing, server: iwarp.QPConfig{Commit: &iwarp.CommitOptions{StrictDurable: strict}}})
		_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, nil)
		err := client.qp.Commit(testContext(t), mr.Advertise(0, 8))
		if strict {
			require.ErrorIs(t, err, commit.ErrNotDurable)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestCommitThatCannotBePosted(t *testing.T) {
	ctx := testContext(t)
	for _, depths := range []struct{ ord, ird int }{{ord: -1}, {ird: -1}} {
		c, s := committing, committing
		c.ORD, s.IRD = depths.ord, depths.ird
		client, _ := connect(t, pairConfig{client: c, server: s})
		require.ErrorIs(t, client.qp.Commit(ctx, iwarp.RemoteBuffer{}), iwarp.ErrUnsupported, "without an ORD: %+v", depths)
		require.Equal(t, iwarp.StateRTS, client.qp.State())
	}
	client, server := committers(t)
	_, mr := client.register(64, stag.LocalWrite, nil)
	at := iwarp.RemoteBuffer{Len: 8}
	for what, x := range map[string]struct {
		wr iwarp.SendWR
		is error
	}{
		"no region":                   {iwarp.SendWR{}, nil},
		"too many regions":            {iwarp.SendWR{Regions: make([]iwarp.RemoteBuffer, 65)}, iwarp.ErrLimit},
		"a follow-on of seven octets": {iwarp.SendWR{Regions: []iwarp.RemoteBuffer{at}, FollowOn: &iwarp.FollowOn{At: iwarp.RemoteBuffer{Len: 7}}}, iwarp.ErrBounds},
		"local octets":                {iwarp.SendWR{Regions: []iwarp.RemoteBuffer{at}, Local: []iwarp.SGE{mr.Slice(0, 8)}}, nil},
		"solicited":                   {iwarp.SendWR{Regions: []iwarp.RemoteBuffer{at}, Flags: iwarp.Solicited}, nil},
	} {
		x.wr.Op = iwarp.OpCommit
		err := client.qp.PostSend(x.wr)
		require.Error(t, err, what)
		if x.is != nil {
			require.ErrorIs(t, err, x.is, what)
		}
	}
	require.NoError(t, client.qp.Commit(ctx, iwarp.RemoteBuffer{}), "nothing of it has reached the peer")
	require.Equal(t, iwarp.StateRTS, server.qp.State())
}

func TestCMT_53_CloseWaitsForTheFlush(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	m := medium{hold: make(chan struct{})}
	_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m})
	answered := make(chan error, 1)
	go func() { answered <- client.qp.Commit(ctx, mr.Advertise(0, 8)) }()
	require.Eventually(t, m.hasBegun, 10*time.Second, time.Millisecond)
	closed := make(chan error, 1)
	go func() { closed <- mr.Close() }()
	require.Eventually(t, func() bool { return !mr.Valid() }, 10*time.Second, time.Millisecond, "the STag is dead at once")
	require.Empty(t, closed, "but the octets are in use")
	close(m.hold)
	require.NoError(t, <-closed)
	require.NoError(t, <-answered, "the Commit ends as if nothing had happened")
}

func TestCMT_55_DurableOnReceive(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	var m, other medium
	_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m, DurableOnReceive: true})
	elsewhere, err := server.rnic.AllocPD()
	require.NoError(t, err)
	_, err = elsewhere.RegisterMR(make([]byte, 64), stag.LocalWrite, &iwarp.MROptions{Durable: &other, DurableOnReceive: true})
	require.NoError(t, err)
	_, local := client.register(64, stag.LocalWrite, nil)
	sends := func() (int, error) {
		received := make(chan error, 1)
		go func() {
			_, err := server.qp.Recv(ctx, iwarp.SGE{})
			received <- err
		}()
		require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 8), local.Slice(0, 8)))
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled}))
		return len(m.ranges()), <-received
	}
	_, err = sends()
	require.NoError(t, err)
	require.Equal(t, []commit.Range{{Off: 0, Len: 64}}, m.ranges(), "it is durable before the receive completes")
	require.Empty(t, other.ranges(), "what the peer cannot have written is left alone")

	m.fails(errors.New("no"))
	_, err = sends()
	require.ErrorContains(t, err, "durable on receive", "a receive never claims what is not so")

	client, server = committers(t)
	_, mr = server.register(64, stag.LocalWrite, &iwarp.MROptions{Durable: &m, DurableOnReceive: true})
	require.NoError(t, mr.Close())
	before := len(m.ranges())
	_, mr = server.register(64, stag.LocalWrite|stag.RemoteWrite, nil)
	_, local = client.register(64, stag.LocalWrite, nil)
	_, err = sends()
	require.NoError(t, err)
	require.Len(t, m.ranges(), before, "a region that was closed is left alone")
}

// TestCMT_55_RegionsThatAreDurableOnReceive: all that the peer may have written, and no others.
func TestCMT_55_RegionsThatAreDurableOnReceive(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	first := server.qp
	client.connect(server, pairConfig{client: committing, server: committing}) // another QP of the PD
	var all, own, others, closed medium
	server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &all, DurableOnReceive: true})
	_, gone := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &closed, DurableOnReceive: true})
	server.register(32, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &own, DurableOnReceive: true, QP: server.qp})
	server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &others, DurableOnReceive: true, QP: first})
	require.NoError(t, gone.Close())
	require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
	require.NoError(t, client.qp.Send(ctx))
	require.Equal(t, iwarp.StatusSuccess, server.endOfReceive().Status)
	require.Equal(t, []commit.Range{{Len: 64}}, all.ranges())
	require.Equal(t, []commit.Range{{Len: 32}}, own.ranges())
	require.Empty(t, others.ranges(), "the peer of another QP writes there")
	require.Empty(t, closed.ranges(), "it was closed, and the others were not")
}

// touched is a medium that is told of what was written.
type touched struct {
	medium
	told []commit.Range
}

func (m *touched) Touched(off, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, commit.Range{Off: off, Len: n})
}

func TestWriteThroughAndIntegrity(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	var m touched
	mem, mr := server.register(64, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: &m, WriteThrough: true})
	checks := func(off, n int64) error {
		if mem[off] == 'x' {
			return errors.New("bad record")
		}
		return nil
	}
	checked, err := server.pd.RegisterMR(mem, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m, Integrity: checks})
	require.NoError(t, err)
	src, local := client.register(64, stag.LocalWrite, nil)
	copy(src, "x")
	require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(8, 4), local.Slice(0, 4)))
	require.NoError(t, client.qp.RDMARead(ctx, local.Slice(8, 4), mr.Advertise(8, 4)))
	require.Equal(t, []commit.Range{{Off: 8, Len: 4}}, m.told)
	require.Equal(t, []commit.Range{{Off: 8, Len: 4}}, m.ranges(), "written through, without a Commit")
	require.ErrorIs(t, client.qp.Commit(ctx, checked.Advertise(0, 4), checked.Advertise(8, 4)), commit.ErrIntegrity)
	require.Len(t, m.ranges(), 2, "what fails the check is not flushed")
}

func TestCMT_59_DurableNeedsABackingThatCanFlush(t *testing.T) {
	s := newSide(t, nil)
	f, err := commit.OpenFile(filepath.Join(t.TempDir(), "data"), &commit.FileOptions{Size: 4096})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	for what, o := range map[string]*iwarp.MROptions{
		"durable on receive, by nothing":  {DurableOnReceive: true},
		"written through to nothing":      {WriteThrough: true},
		"checked before nothing":          {Integrity: func(int64, int64) error { return nil }},
		"memory, durable as another file": {Durable: f},
	} {
		_, err := s.pd.RegisterMR(make([]byte, 64), stag.LocalWrite, o)
		require.Error(t, err, what)
	}
	_, err = s.pd.AllocMR(64, stag.LocalWrite, &iwarp.MROptions{Durable: &medium{}})
	require.Error(t, err)
	require.NoError(t, s.pd.Close(), "nothing was registered")
}

func TestNothingIsAllocatedForACommit(t *testing.T) {
	client, server := committers(t)
	_, own := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: discard{}})
	b, err := commit.NewBuffer(&scratch{})
	require.NoError(t, err)
	backed, err := server.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: b})
	require.NoError(t, err)
	wcs := make([]iwarp.WC, 1)
	for what, mr := range map[string]*iwarp.MR{"a Commit by a Flusher of the user's own": own, "a Commit by a backing": backed} {
		wr := []iwarp.SendWR{{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{mr.Advertise(0, 8), mr.Advertise(8, 8)}, FollowOn: &iwarp.FollowOn{At: mr.Advertise(16, 8)}}}
		wantNoAllocs(t, what, func() {
			wr[0].FollowOn.Value[7]++
			if err := client.qp.PostSend(wr...); err != nil {
				t.Fatal(err)
			}
			one(t, client.qp.SendCQ(), wcs)
		})
	}
	require.NotZero(t, b.Syncs())
}

// A scratch is a buffer whose octets are nowhere durable.
type scratch struct{ mem [64]byte }

func (s *scratch) Size() int64                              { return int64(len(s.mem)) }
func (s *scratch) ReadAt(p []byte, off int64) (int, error)  { return copy(p, s.mem[off:]), nil }
func (s *scratch) WriteAt(p []byte, off int64) (int, error) { return copy(s.mem[off:], p), nil }
func (s *scratch) Sync() error                              { return nil }
func (s *scratch) Atomic() bool                             { return true }

type discard struct{}

func (discard) Flush(context.Context, int64, int64) error { return nil }

// TestCMT_57_WithdrawingARegion: its owner takes a region back. Before it is revoked, the upper layer
// asks the peer to finish and to give it back, so the connection goes on.
func TestCMT_57_WithdrawingARegion(t *testing.T) {
	for what, revoke := range map[string]func(context.Context, *iwarp.MR) error{
		"Close":      func(_ context.Context, mr *iwarp.MR) error { return mr.Close() },
		"Invalidate": func(ctx context.Context, mr *iwarp.MR) error { return mr.Invalidate(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			client, server := committers(t)
			ctx := testContext(t)
			var m medium
			asked := 0
			withdraw := func(ctx context.Context, mr *iwarp.MR) error {
				asked++
				require.True(t, mr.Valid(), "the callback comes before the revocation")
				require.ErrorIs(t, mr.Close(), iwarp.ErrWithdrawing, "which it cannot do itself")
				require.ErrorIs(t, mr.Invalidate(ctx), iwarp.ErrWithdrawing)
				if asked == 1 {
					return syscall.EAGAIN
				}
				if err := server.qp.Send(ctx); err != nil { // give it back, please
					return err
				}
				_, err := server.qp.Recv(ctx, iwarp.SGE{})
				return err
			}
			_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m, Withdraw: withdraw})
			_, other := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: &m})
			require.NoError(t, client.qp.PostRecv(iwarp.RecvWR{}))
			require.ErrorIs(t, revoke(ctx, mr), syscall.EAGAIN, "what the upper layer does not grant is not revoked")
			require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 8)))

			revoked := make(chan error, 1)
			go func() { revoked <- revoke(ctx, mr) }()
			one(t, client.qp.RecvCQ(), make([]iwarp.WC, 1))
			require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 8)), "the peer finishes what it has begun")
			require.Empty(t, revoked)
			require.NoError(t, client.qp.Send(ctx), "and agrees")
			require.NoError(t, <-revoked)
			require.False(t, mr.Valid())
			require.NoError(t, client.qp.Commit(ctx, other.Advertise(0, 8)), "the connection has not noticed")
			require.NoError(t, mr.Close(), "the callback is not called again")
			require.NoError(t, mr.Close())
			require.Equal(t, 2, asked)
		})
	}
}

// TestCMT_32_StatusThatIsNotKnown: a peer may have statuses of its own.
func TestCMT_32_StatusThatIsNotKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, committing, nil)
		for i, status := range []uint32{0x00010000, 0x00001234, 0xffff0000, 0x80000000, 0x0000ffff, 0xffffffff, 0x12345678, 1 << 16, 9} {
			id := uint32(i + 1)
			errs := make(chan error, 1)
			go func() { errs <- k.qp.Commit(testContext(t), iwarp.RemoteBuffer{STag: 7, TO: 5, Len: 8}) }()
			k.p.Segment()
			answer := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, id), status)
			k.p.Send(wiretest.Untagged(0x41, 0x4d, 0, 3, id, 0, string(answer)))
			err := <-errs
			var e *commit.Error
			require.ErrorAs(t, err, &e, "status %#x is a failure", status)
			require.Equal(t, commit.Status(status), e.Status)
			require.Equal(t, iwarp.StateRTS, k.qp.State())
		}
		errs := make(chan error, 1)
		go func() { errs <- k.qp.Commit(testContext(t), iwarp.RemoteBuffer{STag: 7, TO: 5, Len: 8}) }()
		k.p.Segment()
		k.p.Send(wiretest.Untagged(0x41, 0x4d, 0, 3, 10, 0, "\x00\x00\x00\x0a\x00\x00\x00\x00"))
		require.NoError(t, <-errs, "and 0 is none")
		require.NoError(t, k.qp.Abort())
	})
}

func TestCMT_54_SlowMediumDelaysNoOtherStream(t *testing.T) {
	client, server := committers(t)
	ctx := testContext(t)
	slow := medium{hold: make(chan struct{})}
	_, mr := server.register(64, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: &slow})
	_, quick := server.register(64, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: discard{}})
	first, ird := client.qp, server.qp.IRD()
	for range 3 * ird {
		require.NoError(t, first.PostSend(iwarp.SendWR{Op: iwarp.OpCommit, Flags: iwarp.Unsignaled, Regions: []iwarp.RemoteBuffer{mr.Advertise(0, 8)}}))
	}
	require.Eventually(t, func() bool { _, irq := server.qp.Unfinished(); return irq == ird }, 10*time.Second, time.Millisecond,
		"as many as the IRD are at the peer")
	client.connect(server, pairConfig{client: committing, server: committing})
	require.NoError(t, client.qp.Commit(ctx, quick.Advertise(0, 8)), "another stream is served")
	close(slow.hold)
	require.NoError(t, first.Commit(ctx, mr.Advertise(0, 8)))
	require.Len(t, slow.ranges(), 3*ird+1, "and none was forgotten")
}

// TestCMT_54_RefusedCommitLeavesNothingUnderWay: a peer that asks for what it must not have holds up
// no end.
func TestCMT_54_RefusedCommitLeavesNothingUnderWay(t *testing.T) {
	for what, bad := range map[string]iwarp.SendWR{
		"a region":    {Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{{STag: 0x01020304, Len: 8}}},
		"a follow-on": {Op: iwarp.OpCommit, FollowOn: &iwarp.FollowOn{At: iwarp.RemoteBuffer{STag: 0x01020304, Len: 8}}},
	} {
		t.Run(what, func(t *testing.T) {
			client, server := committers(t)
			_, err := doOne(testContext(t), client.qp, bad)
			require.ErrorIs(t, err, net.ErrClosed)
			<-server.qp.Done()
			closed := make(chan error, 1)
			go func() { closed <- server.rnic.Close() }()
			select {
			case err := <-closed:
				require.NoError(t, err, "RNIC.Close does not wait for a Commit that was refused")
			case <-time.After(10 * time.Second):
				require.Fail(t, "RNIC.Close does not return")
			}
		})
	}
}
