package iwarp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestVERBS_49_70_RandomPrograms: two QPs do what a random program says: posts of all kinds,
// registrations, invalidations, and an end. A model does the same, one step at a time. No
// completion is lost, doubled or out of order, and memory is what the model says.
func TestVERBS_49_70_RandomPrograms(t *testing.T) {
	client, server := newSide(t, nil), newSide(t, nil)
	// The same programs each time; these flags ask for others and for more.
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.checks": "500", "rapid.nofailfile": "true"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			require.NoError(t, f.Value.Set(value))
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(t, rt, client, server)
		for _, s := range rapid.SliceOfN(rapid.Custom(drawLine), 0, 50).Draw(rt, "program") {
			m.does(s)
		}
		m.settles()
		m.ends(rapid.SampledFrom(modelEnds).Draw(rt, "end"))
	})
}

// A line is one step of a program. What a, b and c mean depends on the action.
type line struct {
	Action  string
	Side    int
	A, B, C int
}

func drawLine(rt *rapid.T) line {
	actions := []string{"register", "recv", "send", "write", "read", "write", "read", "write imm", "add", "send invalidate", "close region", "local invalidate"}
	num := rapid.IntRange(0, 255)
	return line{
		Action: rapid.SampledFrom(actions).Draw(rt, "action"), Side: rapid.IntRange(0, 1).Draw(rt, "side"),
		A: num.Draw(rt, "a"), B: num.Draw(rt, "b"), C: num.Draw(rt, "c"),
	}
}

const (
	modelMem    = 256 // of a side's own memory
	modelTarget = 64  // of a region that the peer may use
	modelSlot   = 32  // of a receive
	modelDepth  = 512
)

// A model is what two connected ends should come to.
type model struct {
	*rapid.T
	ctx   context.Context
	sides [2]*modelSide
}

// A modelSide is one end. mem is its own: source of what it sends, sink of what it reads.
// The targets are the peer's to write and read. So the work of a side touches only memory
// that no work of the other side touches, and the model can perform it at once.
type modelSide struct {
	*side
	srq       *iwarp.SRQ
	sendCQ    *iwarp.CQ
	recvCQ    *iwarp.CQ
	mem, want []byte
	mr        *iwarp.MR
	inbox     []byte // of slots
	inboxMR   *iwarp.MR
	targets   []*modelRegion
	dead      []*modelRegion // invalidated

	sends    []modelWR // that have not been looked for yet
	receives int       // posted
	got      int       // completed
	messages []modelMessage

	sinks, sources []modelRange // of Reads since the last fence
}

type modelWR struct {
	id       uint64
	signaled bool
	old      uint64 // of an addition: the value before
}

// A modelMessage is one that the peer has sent.
type modelMessage struct {
	op   iwarp.Op
	data []byte
	imm  [8]byte
}

type modelRegion struct {
	mem, want []byte
	mr        *iwarp.MR
	bound     bool
}

type modelRange struct {
	mr  *iwarp.MR
	off int
	n   int
}

func (r modelRange) meets(all []modelRange) bool {
	for _, o := range all {
		if r.mr == o.mr && r.off < o.off+o.n && o.off < r.off+r.n {
			return true
		}
	}
	return false
}

func newModel(t *testing.T, rt *rapid.T, client, server *side) *model {
	network := rapid.SampledFrom([]string{"pipe", "tcp"}).Draw(rt, "network")
	shared := rapid.Bool().Draw(rt, "with an SRQ")
	m := &model{T: rt, ctx: testContext(t)}
	var configs [2]iwarp.QPConfig
	for i, s := range []*side{client, server} {
		x := &modelSide{side: &side{T: t, rnic: s.rnic, pd: s.pd}}
		x.sendCQ, x.recvCQ = iwarp.NewCQ(s.rnic, modelDepth), iwarp.NewCQ(s.rnic, modelDepth)
		x.mem, x.mr = x.register(modelMem, stag.LocalWrite, nil)
		fillRandom(x.mem)
		x.want = bytes.Clone(x.mem)
		x.inbox, x.inboxMR = x.register(modelDepth*modelSlot, stag.LocalWrite, nil)
		configs[i] = iwarp.QPConfig{SendCQ: x.sendCQ, RecvCQ: x.recvCQ, SendDepth: modelDepth, RecvDepth: modelDepth, RNRWait: wiretest.Patience}
		if shared && i == 1 {
			var err error
			x.srq, err = x.pd.CreateSRQ(modelDepth)
			require.NoError(rt, err)
			configs[i].SRQ = x.srq
		}
		m.sides[i] = x
	}
	m.sides[0].connect(m.sides[1].side, pairConfig{network: network, client: configs[0], server: configs[1]})
	// The first message of the initiator lets the responder send.
	m.posts(0, iwarp.SendWR{Op: iwarp.OpRDMAWrite})
	return m
}

// posts posts one work request, every third one unsignaled.
func (m *model) posts(i int, wr iwarp.SendWR) {
	x := m.sides[i]
	wr.ID = uint64(len(x.sends))
	if wr.ID%3 == 2 {
		wr.Flags |= iwarp.Unsignaled
	}
	if wr.Flags&iwarp.ReadFence != 0 {
		x.sinks, x.sources = nil, nil
	}
	x.sends = append(x.sends, modelWR{id: wr.ID, signaled: wr.Flags&iwarp.Unsignaled == 0})
	require.NoError(m, x.qp.PostSend(wr))
}

func (m *model) does(s line) {
	x, y := m.sides[s.Side], m.sides[1-s.Side]
	off := s.A % (modelMem - modelSlot)
	n := s.B % (modelSlot + 1)
	var region *modelRegion
	if len(y.targets) > 0 {
		region = y.targets[s.C%len(y.targets)]
	}
	to := s.C % (modelTarget - modelSlot)
	switch s.Action {
	case "register":
		x.lends(s.A%2 == 0)
	case "recv":
		m.receives(s.Side)
	case "send":
		m.sends(s.Side, iwarp.SendWR{Op: iwarp.OpSend}, off, n)
	case "write":
		if region != nil {
			m.writes(s.Side, region, off, to, n)
		}
	case "read":
		if region != nil {
			m.reads(s.Side, region, off, to, n)
		}
	case "write imm":
		if region != nil {
			m.writes(s.Side, region, off, to, n)
			imm := [8]byte{byte(s.A), byte(s.B), byte(s.C)}
			y.messages = append(y.messages, modelMessage{op: iwarp.OpRecvImm, imm: imm})
			m.posts(s.Side, iwarp.SendWR{Op: iwarp.OpRDMAWriteImm, Imm: imm})
		}
	case "add":
		if region != nil {
			m.adds(s.Side, region, to&^7, uint64(s.A))
		}
	case "send invalidate":
		if region != nil && region.bound {
			y.loses(region)
			// Reads of it must have been answered before it dies.
			m.sends(s.Side, iwarp.SendWR{Op: iwarp.OpSendInvalidate, Flags: iwarp.ReadFence, Invalidate: region.mr.STag()}, off, n)
		}
	case "close region":
		if region != nil {
			m.settles()
			y.loses(region)
			require.NoError(m, region.mr.Close())
		}
	case "local invalidate":
		if region != nil {
			m.settles()
			y.loses(region)
			m.posts(1-s.Side, iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Flags: iwarp.LocalFence, Invalidate: region.mr.STag()})
		}
	}
}

// lends registers memory for the peer.
func (x *modelSide) lends(bound bool) {
	if len(x.targets) == 3 {
		return
	}
	var o *iwarp.MROptions
	if bound {
		o = &iwarp.MROptions{QP: x.qp}
	}
	r := &modelRegion{bound: bound}
	r.mem, r.mr = x.register(modelTarget, stag.LocalWrite|stag.RemoteRead|stag.RemoteWrite|stag.RemoteAtomic, o)
	fillRandom(r.mem)
	r.want = bytes.Clone(r.mem)
	x.targets = append(x.targets, r)
}

// loses takes a region out of what the peer may use.
func (x *modelSide) loses(r *modelRegion) {
	for i := range x.targets {
		if x.targets[i] == r {
			x.targets = append(x.targets[:i], x.targets[i+1:]...)
			break
		}
	}
	x.dead = append(x.dead, r)
}

func (m *model) receives(i int) {
	x := m.sides[i]
	wr := iwarp.RecvWR{ID: uint64(x.receives), Local: []iwarp.SGE{x.inboxMR.Slice(x.receives*modelSlot, modelSlot)}}
	x.receives++
	if x.srq != nil {
		require.NoError(m, x.srq.PostRecv(wr))
		return
	}
	require.NoError(m, x.qp.PostRecv(wr))
}

// sends sends n octets of the side's own memory.
func (m *model) sends(i int, wr iwarp.SendWR, off, n int) {
	x, y := m.sides[i], m.sides[1-i]
	wr.Local = []iwarp.SGE{x.mr.Slice(off, n)}
	if (modelRange{x.mr, off, n}).meets(x.sinks) {
		wr.Flags |= iwarp.ReadFence
	}
	y.messages = append(y.messages, modelMessage{op: iwarp.OpRecv, data: bytes.Clone(x.want[off : off+n])})
	m.posts(i, wr)
}

func (m *model) writes(i int, r *modelRegion, off, to, n int) {
	x := m.sides[i]
	wr := iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{x.mr.Slice(off, n)}, Remote: r.mr.Advertise(to, n)}
	if (modelRange{x.mr, off, n}).meets(x.sinks) || (modelRange{r.mr, to, n}).meets(x.sources) {
		wr.Flags |= iwarp.ReadFence
	}
	copy(r.want[to:to+n], x.want[off:])
	m.posts(i, wr)
}

// adds changes 8 octets of a region at to.
func (m *model) adds(i int, r *modelRegion, to int, n uint64) {
	x := m.sides[i]
	cell := modelRange{r.mr, to, 8}
	wr := iwarp.SendWR{Op: iwarp.OpFetchAdd, Add: n, Remote: r.mr.Advertise(to, 8)}
	if cell.meets(x.sources) {
		wr.Flags |= iwarp.ReadFence
	}
	m.posts(i, wr)
	x.sources = append(x.sources, cell)
	old := binary.NativeEndian.Uint64(r.want[to:])
	x.sends[len(x.sends)-1].old = old
	binary.NativeEndian.PutUint64(r.want[to:], old+n)
}

func (m *model) reads(i int, r *modelRegion, off, to, n int) {
	x := m.sides[i]
	m.posts(i, iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{x.mr.Slice(off, n)}, Remote: r.mr.Advertise(to, n)})
	x.sinks, x.sources = append(x.sinks, modelRange{x.mr, off, n}), append(x.sources, modelRange{r.mr, to, n})
	copy(x.want[off:off+n], r.want[to:])
}

// settles waits until everything is done, and compares.
func (m *model) settles() {
	for i, x := range m.sides {
		for x.receives < len(x.messages) {
			m.receives(i)
		}
	}
	for i := range m.sides {
		m.posts(i, iwarp.SendWR{Op: iwarp.OpRDMARead, Flags: iwarp.ReadFence}) // tells that earlier Writes were placed
	}
	for _, x := range m.sides {
		require.NoError(m, x.qp.Drain(m.ctx))
	}
	for i, x := range m.sides {
		for _, wc := range x.completes(x.recvCQ, len(x.messages)-x.got) {
			want := x.messages[x.got]
			require.Equal(m, iwarp.WC{ID: uint64(x.got), QP: x.qp, Op: want.op, Len: uint32(len(want.data)), Imm: want.imm, STag: wc.STag}, wc, "side %d receives in order", i)
			slot := x.inbox[x.got*modelSlot:][:modelSlot]
			require.Equal(m, string(want.data), string(slot[:wc.Len]), "side %d, message %d", i, x.got)
			x.got++
		}
		m.looks(i, x.polls(x.sendCQ), true)
		require.Equal(m, x.want, x.mem, "side %d's own memory", i)
		for _, r := range append(x.targets, x.dead...) {
			require.Equal(m, r.want, r.mem, "side %d's region", i)
		}
	}
}

// polls takes what is there.
func (x *modelSide) polls(cq *iwarp.CQ) []iwarp.WC {
	wcs := make([]iwarp.WC, modelDepth)
	return wcs[:cq.Poll(wcs)]
}

// looks compares completions with the work requests of a side. Without well there may be
// failures: from the first one everything completes, all but one of it flushed.
func (m *model) looks(i int, wcs []iwarp.WC, well bool) {
	x := m.sides[i]
	failed, errors := false, 0
	for _, wr := range x.sends {
		if len(wcs) == 0 || wcs[0].ID != wr.id {
			require.False(m, failed || wr.signaled, "side %d: completion %d is missing", i, wr.id)
			continue
		}
		if wcs[0].Status != iwarp.StatusSuccess {
			failed = true
		}
		if wcs[0].Op == iwarp.OpFetchAdd && !failed {
			require.Equal(m, wr.old, wcs[0].Old, "side %d: the value before", i)
		}
		if s := wcs[0].Status; s != iwarp.StatusSuccess && s != iwarp.StatusFlushed {
			errors++
		}
		require.Equal(m, failed, wcs[0].Status != iwarp.StatusSuccess, "side %d: what follows a failure fails", i)
		wcs = wcs[1:]
	}
	require.Empty(m, wcs, "side %d: nothing completes twice, or unasked", i)
	require.False(m, well && failed, "side %d", i)
	require.LessOrEqual(m, errors, 1)
	x.sends = nil
}

// modelEnds are the ways in which a program may end.
var modelEnds = []string{"close", "close both", "abort", "terminate", "dead region"}

func (m *model) ends(how string) {
	a, b := m.sides[0], m.sides[1]
	graceful := how == "close" || how == "close both"
	_, gone := b.register(8, stag.LocalWrite|stag.RemoteWrite, nil)
	dead := gone.Advertise(0, 8)
	require.NoError(m, gone.Close())
	if !graceful {
		for i, x := range m.sides { // work that may or may not be done
			x.lends(false)
			m.receives(i)
		}
		for i := range m.sides {
			y := m.sides[1-i]
			for k := range 5 {
				m.reads(i, y.targets[0], 0, k, modelSlot)
				m.writes(i, y.targets[0], 64, k, modelSlot)
			}
			m.sends(i, iwarp.SendWR{Op: iwarp.OpSend}, 0, 3)
		}
	}
	switch how {
	case "close":
		require.NoError(m, a.qp.Close())
	case "close both":
		closed := make(chan error, 1)
		go func() { closed <- b.qp.Close() }()
		require.NoError(m, a.qp.Close())
		require.NoError(m, <-closed)
	case "abort":
		require.NoError(m, b.qp.Abort())
	case "terminate":
		_ = a.qp.Terminate() // the peer may have seen an end before
	case "dead region":
		m.posts(0, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte{1}, Remote: dead})
	}
	<-a.qp.Done()
	<-b.qp.Done()
	for i, x := range m.sides {
		m.looks(i, x.polls(x.sendCQ), graceful)
		m.looksAtReceives(i, graceful)
		x.clears()
	}
}

// looksAtReceives makes sure that every receive that is still posted completes once: an
// SRQ's only if a message has taken it.
func (m *model) looksAtReceives(i int, graceful bool) {
	x := m.sides[i]
	failed := false
	for _, wc := range x.polls(x.recvCQ) {
		require.EqualValues(m, x.got, wc.ID, "side %d receives in order", i)
		failed = failed || wc.Status != iwarp.StatusSuccess
		require.Equal(m, failed, wc.Status != iwarp.StatusSuccess)
		require.False(m, graceful && !failed, "nothing was under way")
		x.got++
	}
	if x.srq != nil {
		require.EqualValues(m, x.got, x.srq.Stats().Taken)
		require.NoError(m, x.srq.Close())
		return
	}
	require.Equal(m, x.receives, x.got, "side %d: every receive completes", i)
}

// clears gives back what a program has used.
func (x *modelSide) clears() {
	for _, r := range append(x.targets, x.dead...) {
		_ = r.mr.Close() // some are closed
	}
	_ = x.mr.Close()
	_ = x.inboxMR.Close()
}
