package matrix

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// errorCases make one side do what the other side must not allow.
func errorCases() []Case {
	return slices.Concat(
		both(Case{Name: "terminate/from-siw/write-bounds", Core: true, Run: func(t *T) {
			t.siwObjects(iwarp.ErrBounds, func(_ *end, theirs iwarp.RemoteBuffer, local iwarp.SGE) iwarp.SendWR {
				return iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{local}, Remote: at(theirs, 4000, 1000)}
			})
		}}),
		both(Case{Name: "terminate/from-siw/write-stag", Core: true, Run: func(t *T) {
			t.siwObjects(iwarp.ErrInvalidSTag, func(_ *end, theirs iwarp.RemoteBuffer, local iwarp.SGE) iwarp.SendWR {
				theirs.STag ^= 0x5a5a5a00
				return iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{local}, Remote: theirs}
			})
		}}),
		both(Case{Name: "terminate/from-siw/read-stag", Core: true, Run: func(t *T) {
			t.siwObjects(iwarp.ErrInvalidSTag, func(_ *end, theirs iwarp.RemoteBuffer, local iwarp.SGE) iwarp.SendWR {
				theirs.STag ^= 0x5a5a5a00
				return iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{local}, Remote: theirs}
			})
		}}),
		both(Case{Name: "terminate/from-siw/read-bounds", Core: true, Run: func(t *T) {
			t.siwObjects(iwarp.ErrBounds, func(_ *end, theirs iwarp.RemoteBuffer, local iwarp.SGE) iwarp.SendWR {
				return iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{local}, Remote: at(theirs, 4000, 1000)}
			})
		}}),
		both(Case{Name: "terminate/from-siw/long-send", Core: true, Run: func(t *T) {
			// siw answers with 1/2/02, "no buffer", where RFC 5041 specifies 1/2/05, "too long".
			t.siwObjects(iwarp.ErrNoReceive, func(_ *end, _ iwarp.RemoteBuffer, local iwarp.SGE) iwarp.SendWR {
				return iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{local}}
			})
		}}),
		both(Case{Name: "terminate/from-us/write-bounds", Core: true, Wire: terminates(1, 1, 0x01), Run: func(t *T) {
			t.weObject(iwarp.ErrBounds, func(p *peer, mr *iwarp.MR) { p.write(1, 0, 0, 1000, "-", at(mr.Advertise(0, 4096), 4000, 1000)) })
		}}),
		both(Case{Name: "terminate/from-us/write-access", Core: true, Wire: terminates(1, 1, 0x02), Run: func(t *T) {
			t.weObjectTo(iwarp.ErrAccess, stag.LocalWrite|stag.RemoteRead, func(p *peer, mr *iwarp.MR) {
				p.write(1, 0, 0, 1000, "-", mr.Advertise(0, 1000))
			})
		}}),
		both(Case{Name: "terminate/from-us/write-stag", Core: true, Wire: terminates(1, 1, 0x00), Run: func(t *T) {
			t.weObject(iwarp.ErrInvalidSTag, func(p *peer, mr *iwarp.MR) {
				rb := mr.Advertise(0, 1000)
				rb.STag ^= 0x5a5a5a00
				p.write(1, 0, 0, 1000, "-", rb)
			})
		}}),
		both(Case{Name: "terminate/from-us/read-stag", Core: true, Wire: terminates(0, 1, 0x00), Run: func(t *T) {
			t.weObject(iwarp.ErrInvalidSTag, func(p *peer, mr *iwarp.MR) {
				rb := mr.Advertise(0, 1000)
				rb.STag ^= 0x5a5a5a00
				p.read(1, 0, 0, 1000, "-", rb)
			})
		}}),
		both(Case{Name: "terminate/from-us/read-bounds", Core: true, Wire: terminates(0, 1, 0x01), Run: func(t *T) {
			t.weObject(iwarp.ErrBounds, func(p *peer, mr *iwarp.MR) { p.read(1, 0, 0, 1000, "-", at(mr.Advertise(0, 4096), 4000, 1000)) })
		}}),
		both(Case{Name: "terminate/from-us/long-send", Core: true, Wire: terminates(1, 2, 0x05), Run: func(t *T) {
			t.weObject(iwarp.ErrBounds, func(p *peer, _ *iwarp.MR) { p.send(1, 0, 0, 1000, "-", 0) })
		}}),
	)
}

// siwObjects posts a work request that siw must answer with a Terminate that means want.
func (t *T) siwObjects(want error, wr func(e *end, theirs iwarp.RemoteBuffer, local iwarp.SGE) iwarp.SendWR) {
	e, p := t.connect(setting{})
	theirs := p.mr(0, 4096, all)
	p.mr(1, 16, all)
	p.recv(7, 1, 0, 16)
	_, mr := e.mr(4096, ourAll)
	e.post(wr(e, theirs, mr.Slice(0, 1000)))
	<-e.qp.Done()
	require.ErrorIs(t, e.qp.Err(), want, "our queue pair ends with the cause that siw tells")
	var terminated *iwarp.TerminateError
	require.ErrorAs(t, e.qp.Err(), &terminated, "which came as a Terminate")
	require.True(t, terminated.Remote, "from siw")
	p.do("disconnected")
	p.do("destroy")
}

func (t *T) weObject(want error, does func(p *peer, mr *iwarp.MR)) { t.weObjectTo(want, ourAll, does) }

// weObjectTo makes siw do what we must answer with a Terminate that means want.
func (t *T) weObjectTo(want error, access stag.Access, does func(p *peer, mr *iwarp.MR)) {
	e, p := t.connect(setting{})
	p.mr(0, 4096, all)
	_, mr := e.mr(4096, access)
	_, small := e.mr(16, stag.LocalWrite)
	e.recv(7, small.Slice(0, 16))
	// siw needs a posted receive to notice the end.
	p.recv(8, 0, 0, 64)
	does(p, mr)
	<-e.qp.Done()
	require.ErrorIs(t, e.qp.Err(), want, "our queue pair ends with the cause")
	var terminated *iwarp.TerminateError
	require.ErrorAs(t, e.qp.Err(), &terminated, "for which we sent a Terminate")
	require.False(t, terminated.Remote, "of our own")
	p.do("disconnected")
	p.do("destroy")
}
