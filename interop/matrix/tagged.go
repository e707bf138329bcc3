package matrix

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func taggedCases() []Case {
	return slices.Concat(
		both(Case{Name: "write", Core: true, Limit: 3 * time.Minute, Run: func(t *T) { t.writes(setting{}) }}),
		both(Case{Name: "read", Core: true, Limit: 3 * time.Minute, Run: func(t *T) { t.reads(setting{}) }}),
		both(Case{Name: "write/64-outstanding", Core: true, Run: (*T).write64}),
		both(Case{Name: "read/64-outstanding", Core: true, Run: (*T).read64}),
		both(Case{Name: "mtu/9000", Core: true, Limit: 2 * time.Minute, Run: func(t *T) { t.withMTU(9000) }}),
		both(Case{Name: "mtu/1500-no-crc", Limit: 3 * time.Minute, Run: func(t *T) { t.writes(setting{qc: noCRC}) }}),
	)
}

// regions are the lengths and offsets of RDMA Writes and Reads.
var regions = []struct{ off, n int }{
	{0, 1},
	{1, 1},
	{3, 2},
	{7, 63},
	{0, 64},
	{5, 1439},
	{1, 1440},
	{2, 1441},
	{4095, 4097},
	{11, 65535},
	{0, 65536},
	{13, 65537},
	{1, 1<<20 + 1},
	{4093, 1 << 22},
	{3, 16<<20 - 3},
}

const regionSize = 16 << 20

// at returns a part of a peer's buffer.
func at(rb iwarp.RemoteBuffer, off, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: rb.STag, TO: rb.TO + uint64(off), Len: uint32(n)}
}

// notify sends an empty message, which tells the peer that an RDMA Write has arrived.
func (e *end) notify(p *peer) {
	p.recv(1, 0, 0, 0)
	e.post(iwarp.SendWR{Op: iwarp.OpSend})
	e.sent(1)
	p.good(1)
}

// notified receives such a message from the peer.
func (e *end) notified(p *peer) {
	require.NoError(e.t, e.qp.PostRecv(iwarp.RecvWR{}))
	p.send(1, 0, 0, 0, "-", 0)
	p.good(1)
	e.received(1)
}

// writes performs RDMA Writes of all regions in both directions.
func (t *T) writes(s setting) {
	e, p := t.connect(s)
	theirs := p.mr(0, regionSize, all)
	ours, mr := e.mr(regionSize, ourAll)
	for i, r := range regions {
		fillPattern(ours[r.off:r.off+r.n], i)
		e.post(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{mr.Slice(r.off, r.n)}, Remote: at(theirs, r.off, r.n)})
		e.sent(1)
		e.notify(p)
		p.check(0, r.off, r.n, i)

		p.fill(0, r.off, r.n, i+50)
		p.write(2, 0, r.off, r.n, "-", mr.Advertise(r.off, r.n))
		p.good(1)
		e.notified(p)
		e.checkPattern(ours[r.off:r.off+r.n], i+50, fmt.Sprintf("siw's Write of %d at %d", r.n, r.off))
	}
	e.finish(p)
}

// reads performs RDMA Reads of all regions in both directions.
func (t *T) reads(s setting) {
	e, p := t.connect(s)
	theirs := p.mr(0, regionSize, all)
	ours, mr := e.mr(regionSize, ourAll)
	for i, r := range regions {
		p.fill(0, r.off, r.n, i)
		e.post(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(r.off, r.n)}, Remote: at(theirs, r.off, r.n)})
		require.EqualValues(t, r.n, e.sent(1)[0].Len)
		e.checkPattern(ours[r.off:r.off+r.n], i, fmt.Sprintf("our Read of %d at %d", r.n, r.off))

		fillPattern(ours[r.off:r.off+r.n], i+50)
		p.read(2, 0, r.off, r.n, "-", mr.Advertise(r.off, r.n))
		p.good(1)
		p.check(0, r.off, r.n, i+50)
	}
	e.finish(p)
}

func (t *T) write64() { t.tagged64(iwarp.OpRDMAWrite) }
func (t *T) read64()  { t.tagged64(iwarp.OpRDMARead) }

// tagged64 keeps 64 Writes or Reads outstanding, first from our end and then from siw's.
func (t *T) tagged64(op iwarp.Op) {
	const n, size = 64, 3001
	e, p := t.connect(setting{options: "depth=256"})
	theirs := p.mr(0, n*size, all)
	ours, mr := e.mr(n*size, ourAll)
	write := op == iwarp.OpRDMAWrite
	fill := func(theirSide bool, seed int) {
		if theirSide {
			p.fill(0, 0, n*size, seed)
		} else {
			fillPattern(ours, seed)
		}
	}
	fill(!write, 1)
	var wrs []iwarp.SendWR
	for i := range n {
		wrs = append(wrs, iwarp.SendWR{
			ID: uint64(i), Op: op, Local: []iwarp.SGE{mr.Slice(i*size, size)}, Remote: at(theirs, i*size, size),
		})
	}
	e.post(wrs...)
	for i, wc := range e.sent(n) {
		require.EqualValues(t, i, wc.ID, "our completions are in order")
	}
	e.notify(p)
	p.check(0, 0, n*size, 1)
	e.checkPattern(ours, 1, "after 64 of ours")

	fill(write, 2)
	for i := range n {
		if write {
			p.write(i, 0, i*size, size, "-", mr.Advertise(i*size, size))
		} else {
			p.read(i, 0, i*size, size, "-", mr.Advertise(i*size, size))
		}
	}
	for i, c := range p.good(n) {
		require.EqualValues(t, i, c.id, "siw's completions are in order")
	}
	e.notified(p)
	p.check(0, 0, n*size, 2)
	e.checkPattern(ours, 2, "after 64 of siw's")
	e.finish(p)
}

// withMTU performs Writes over a wire with another MTU.
func (t *T) withMTU(n int) {
	require.NoError(t, setMTU(n), "set the MTU to "+strconv.Itoa(n))
	t.Cleanup(func() {
		if err := setMTU(1500); err != nil {
			t.Errorf("%v", err)
		}
	})
	t.writes(setting{})
}
