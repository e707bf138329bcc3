package matrix

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/interop/wire"
	"github.com/goiwarp/iwarp/stag"
)

// both makes a case for each role.
func both(c Case) []Case {
	other := c
	c.Role, other.Role = Initiator, Responder
	c.Name += "/" + string(Initiator)
	other.Name += "/" + string(Responder)
	return []Case{c, other}
}

func messageCases() []Case {
	return slices.Concat(
		both(Case{Name: "send", Core: true, Run: func(t *T) { t.sends(setting{}) }}),
		both(Case{Name: "send/srq", Core: true, Run: func(t *T) { t.sends(setting{options: "srq=1"}) }}),
		both(Case{
			Name: "send/invalidate", Core: true, Run: (*T).sendInvalidate,
			// The Terminate answers siw's Write to memory whose STag it has invalidated.
			Wire: wire.Expect{Terminate: &wire.Terminate{Layer: 1, Type: 1, Code: 0x00}, Sends: []wire.Opcode{wire.SendInvalidate}},
		}),
		both(Case{
			Name: "send/solicited", Core: true, Run: (*T).sendSolicited,
			Wire: wire.Expect{Sends: []wire.Opcode{wire.Send, wire.SendSolicited, wire.SendSolicitedInvalidate}},
		}),
		both(Case{Name: "send/inline", Core: true, Run: (*T).sendInline}),
		both(Case{Name: "send/64-outstanding", Core: true, Run: (*T).send64}),
		[]Case{{Name: "send/our-srq/responder", Role: Responder, Core: true, Run: (*T).ourSRQ}},
	)
}

// messageSizes are lengths around the boundaries at which something changes.
var messageSizes = []int{0, 1, 2, 3, 4, 63, 64, 65, 1439, 1440, 1441, 4097, 65535, 65537, 1<<20 + 3}

// sends exchanges messages of all sizes in both directions.
func (t *T) sends(s setting) {
	e, p := t.connect(s)
	most := slices.Max(messageSizes)
	p.mr(0, most, all)
	ours, mr := e.mr(most, stag.LocalWrite)
	for i, n := range messageSizes {
		fillPattern(ours[:n], i)
		p.fill(0, 0, most, 100)
		p.recv(i, 0, 0, most)
		e.post(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, n)}})
		e.sent(1)
		c := p.good(1)[0]
		require.EqualValues(t, n, c.length, "siw's length of our message")
		p.check(0, 0, n, i)

		e.recv(uint64(i), mr.Slice(0, most))
		p.fill(0, 0, n, i+50)
		p.send(i, 0, 0, n, "-", 0)
		p.good(1)
		require.EqualValues(t, n, e.received(1)[0].Len, "our length of siw's message")
		e.checkPattern(ours[:n], i+50, "siw's message")
	}
	e.finish(p)
}

func (t *T) sendInvalidate() {
	e, p := t.connect(setting{})
	p.mr(0, 64, all)
	victim := p.mr(1, 64, all)
	buf, mr := e.mr(64, stag.LocalWrite)
	p.recv(1, 0, 0, 64)
	e.post(iwarp.SendWR{Op: iwarp.OpSendInvalidate, Local: []iwarp.SGE{mr.Slice(0, 5)}, Invalidate: victim.STag})
	e.sent(1)
	require.EqualValues(t, 5, p.good(1)[0].length, "siw gets the message that invalidates its STag")

	_, bound := e.bound(64)
	e.recv(2, mr.Slice(0, 64))
	p.fill(0, 0, 7, 3)
	p.send(2, 0, 0, 7, "v", bound.STag())
	p.good(1)
	wc := e.received(1)[0]
	require.Equal(t, bound.STag(), wc.STag, "our completion tells the STag that siw invalidated")
	e.checkPattern(buf[:7], 3, "the message that invalidated")

	// Both STags are invalid now.
	p.write(3, 0, 0, 1, "-", bound.Advertise(0, 1))
	<-e.qp.Done()
	require.ErrorIs(t, e.qp.Err(), iwarp.ErrInvalidSTag, "siw's Write to the dead STag ends the stream")
}

// bound registers memory that the peer may invalidate.
func (e *end) bound(n int) ([]byte, *iwarp.MR) {
	b := make([]byte, n)
	mr, err := e.pd.RegisterMR(b, ourAll, &iwarp.MROptions{QP: e.qp})
	require.NoError(e.t, err)
	return b, mr
}

func (t *T) sendSolicited() {
	e, p := t.connect(setting{})
	p.mr(0, 64, all)
	victim := p.mr(1, 64, all)
	_, mr := e.mr(64, stag.LocalWrite)
	send := func(wr iwarp.SendWR) {
		p.recv(1, 0, 0, 64)
		wr.Local = []iwarp.SGE{mr.Slice(0, 9)}
		e.post(wr)
		e.sent(1)
	}
	p.do("arm")
	send(iwarp.SendWR{Op: iwarp.OpSend})
	require.Equal(t, []string{"0"}, p.do("event 500"), "a plain Send raises no event at siw")
	p.good(1)
	// siw's own completion path forgets that a message was solicited (siw_rqe_complete
	// calls siw_cq_notify_now as for any other), so an event cannot be expected. The check of
	// the capture shows that we have marked it.
	send(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Solicited})
	p.good(1)
	send(iwarp.SendWR{Op: iwarp.OpSendInvalidate, Flags: iwarp.Solicited, Invalidate: victim.STag})
	p.good(1)

	e.recv(1, mr.Slice(0, 64))
	e.recv(2, mr.Slice(0, 64))
	p.send(1, 0, 0, 8, "-", 0)
	p.good(1)
	var wcs [2]iwarp.WC
	ctx, cancel := context.WithTimeout(t.Ctx, 500*time.Millisecond)
	defer cancel()
	_, err := e.qp.RecvCQ().WaitSolicited(ctx, wcs[:])
	require.ErrorIs(t, err, context.DeadlineExceeded, "siw's plain Send raises no event here")
	p.send(2, 0, 0, 8, "s", 0)
	p.good(1)
	n, err := e.qp.RecvCQ().WaitSolicited(t.Ctx, wcs[:])
	require.NoError(t, err)
	require.Equal(t, 2, n, "siw's solicited Send brings both messages")
	require.Equal(t, iwarp.Solicited, wcs[1].Flags&iwarp.Solicited, "and is marked")
	e.finish(p)
}

func (t *T) sendInline() {
	e, p := t.connect(setting{options: "inline=64"})
	target := p.mr(0, 1024, all)
	ours, mr := e.mr(1024, ourAll)
	data := make([]byte, 1024)
	fillPattern(data, 1)
	p.recv(1, 0, 0, 1024)
	e.post(
		iwarp.SendWR{Op: iwarp.OpSend, Inline: data[:333]},
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: data[:1000], Remote: target},
	)
	e.sent(2)
	p.good(1)
	p.recv(2, 0, 1020, 1)
	e.post(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte{1}})
	e.sent(1)
	p.good(1)
	p.check(0, 0, 1000, 1)

	p.fill(0, 0, 64, 2)
	e.recv(1, mr.Slice(512, 512))
	p.write(1, 0, 0, 63, "i", mr.Advertise(0, 512))
	p.send(2, 0, 0, 64, "i", 0)
	p.good(2)
	require.EqualValues(t, 64, e.received(1)[0].Len)
	e.checkPattern(ours[:63], 2, "siw's inline Write")
	e.checkPattern(ours[512:576], 2, "siw's inline Send")
	e.finish(p)
}

func (t *T) send64() {
	const n, size = 64, 1000
	e, p := t.connect(setting{options: "depth=256"})
	p.mr(0, n*size, all)
	ours, mr := e.mr(n*size, stag.LocalWrite)
	fillPattern(ours, 9)
	var wrs []iwarp.SendWR
	for i := range n {
		p.recv(i, 0, i*size, size)
		wrs = append(wrs, iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(i*size, size)}})
	}
	e.post(wrs...)
	e.sent(n)
	for i, c := range p.good(n) {
		require.EqualValues(t, i, c.id, "in order")
	}
	p.check(0, 0, n*size, 9)

	clear(ours)
	for i := range n {
		e.recv(uint64(i), mr.Slice(i*size, size))
	}
	for i := range n {
		p.send(i, 0, i*size, size, "-", 0)
	}
	p.good(n)
	for i, wc := range e.received(n) {
		require.EqualValues(t, i, wc.ID, "in order")
	}
	e.checkPattern(ours, 9, "siw's messages")
	e.finish(p)
}

// ourSRQ makes two peers send in turn to one shared receive queue of ours, each over its own
// connection. The first message of each serves as hello.
func (t *T) ourSRQ() {
	const rounds, size = 20, 5000
	e := t.open()
	e.listen()
	srq, err := e.pd.CreateSRQ(2 * rounds)
	require.NoError(t, err)
	cq, err := e.rnic.CreateCQ(2 * rounds)
	require.NoError(t, err)
	ours, mr := e.mr(2*rounds*size, stag.LocalWrite)
	for i := range 2 * rounds {
		require.NoError(t, srq.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{mr.Slice(i*size, size)}}))
	}
	var qps [2]*iwarp.QP
	var peers [2]*peer
	for i := range peers {
		peers[i] = t.peer("")
		t.respondOnce(e, peers[i], setting{qc: iwarp.QPConfig{SRQ: srq, RecvCQ: cq, RecvDepth: rounds}})
		peers[i].mr(0, size, all)
		qps[i] = e.qp
	}
	for i := range 2 * rounds {
		from, n := i%2, size-i
		peers[from].fill(0, 0, n, i)
		peers[from].send(i, 0, 0, n, "-", 0)
		peers[from].good(1)
		wc := e.good(cq, 1)[0]
		require.EqualValues(t, i, wc.ID, "the message takes the oldest receive")
		require.Same(t, qps[from], wc.QP, "and tells whose it is")
		require.EqualValues(t, n, wc.Len)
		e.checkPattern(ours[i*size:i*size+n], i, "siw's message")
	}
	for i, qp := range qps {
		require.EqualValues(t, rounds, qp.Stats().SharedTaken)
		require.NoError(t, qp.Close(), "our end closes gracefully")
		peers[i].do("disconnected")
		peers[i].do("destroy")
	}
	require.NoError(t, srq.Close())
}
