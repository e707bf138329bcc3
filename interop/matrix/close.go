package matrix

import (
	"net"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/interop/wire"
)

// soon is how long a survivor may need to detect that the other side is gone.
const soon = 2 * time.Second

// torn is what the wire shows if siw's end disappears in the middle of traffic: if its FIN
// overtakes what we wait for, we send a Terminate.
var torn = wire.Expect{AnyTerminate: true}

func closeCases() []Case {
	return slices.Concat(
		both(Case{Name: "close/siw", Core: true, Run: (*T).siwCloses}),
		both(Case{Name: "close/abort-ours", Core: true, Run: (*T).weAbort}),
		both(Case{Name: "close/kill-siw", Core: true, Wire: torn, Run: (*T).siwDies}),
		both(Case{Name: "close/at-once", Core: true, Run: (*T).closeAtOnce}),
	)
}

// siwCloses makes siw's side end the connection gracefully.
func (t *T) siwCloses() {
	e, p := t.connect(setting{})
	p.do("disconnect")
	<-e.qp.Done()
	require.NoError(t, e.qp.Err(), "siw's graceful end is graceful here")
	p.do("disconnected")
	p.do("destroy")
}

// weAbort has us end a connection with traffic both ways.
func (t *T) weAbort() {
	e, p := t.connect(setting{})
	bothWrite(e, p)
	require.NoError(t, e.qp.Abort())
	<-e.qp.Done()
	p.do("disconnected")
	p.do("destroy")
}

// bothWrite has each side write to the other 20 times, from memory to which no Write goes: octets that change while they leave would have
// another CRC.
func bothWrite(e *end, p *peer) {
	const size = 1 << 20
	theirs := p.mr(0, 2*size, all)
	_, mr := e.mr(2*size, ourAll)
	for i := range 20 {
		p.write(i, 0, 0, size, "-", mr.Advertise(size, size))
		e.post(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{mr.Slice(0, size)}, Remote: at(theirs, size, size)})
	}
}

// siwDies kills the peer while it writes to us, and we to it.
func (t *T) siwDies() {
	e, p := t.connect(setting{})
	bothWrite(e, p)
	p.proc.kill()
	require.True(t, t.endsWithin(e.qp.Done(), soon), "the survivor notices within %v", soon)
	for _, wc := range e.take(e.qp.SendCQ(), 20) {
		if err := wc.Err(); err != nil {
			require.ErrorIs(t, err, net.ErrClosed, "what was not done is flushed")
		}
	}
}

// closeAtOnce ends connections that were never used.
func (t *T) closeAtOnce() {
	e, p := t.open(), t.peer("")
	if t.Role == Initiator {
		p.do("listen %s %d", PeerIP, basePort)
	} else {
		e.listen()
	}
	for i := range 10 {
		if t.Role == Initiator {
			t.initiate(e, p, setting{})
		} else {
			t.respondOnce(e, p, setting{})
		}
		if i%2 == 0 {
			p.do("disconnect")
		} else {
			require.NoError(t, e.qp.Abort())
		}
		<-e.qp.Done()
		p.do("disconnected")
		p.do("destroy")
	}
}
