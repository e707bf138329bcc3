package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A capturePath is a QP that gets the octets of a case, and the conn at the other end.
type capturePath struct {
	*side
	*captureCase
	conn  net.Conn
	bufs  [][]byte
	mems  map[stag.STag][]byte
	mrs   map[stag.STag]*iwarp.MR
	known map[stag.STag]stag.STag // from the capture's STags to the QP's
}

// captureListener is where the QPs over TCP are, in all executions.
var captureListener = sync.OnceValues(func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })

func (c *captureCase) overTCP(t *testing.T) *verdict {
	l, err := captureListener()
	require.NoError(t, err)
	a, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err := l.Accept()
	require.NoError(t, err)
	return c.over(t, a, b)
}

func (c *captureCase) overPipe(t *testing.T) *verdict {
	a, b := transport.Pipe(transport.PipeOptions{})
	return c.over(t, a, b)
}

// over plays siw's part at a, and gives b to a QP.
func (c *captureCase) over(t *testing.T, a, b net.Conn) *verdict {
	p := &capturePath{side: newSide(t, nil), captureCase: c, conn: a}
	defer func() { require.NoError(t, p.rnic.Close()) }()
	defer a.Close()
	p.connects(b)
	heard, discarded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(discarded)
		p.hears(heard)
	}()
	p.posts()
	if len(c.reads) > 0 {
		<-heard
	}
	wire, whole := c.octets(p.known)
	p.sends(wire)
	select {
	case <-p.qp.Done():
	case <-time.After(6 * wiretest.Patience):
		require.Fail(t, "the QP does not end")
	}
	<-discarded
	v := p.judges()
	v.whole = whole
	return c.conceals(v)
}

func (p *capturePath) connects(b net.Conn) {
	w := &wiretest.Peer{TB: p, Conn: p.conn}
	flags := "00 01 00 00"
	if p.crc {
		flags = crcOnly
	}
	w.Write(append([]byte(wiretest.RequestKey), wiretest.Hex(flags)...))
	cr, err := p.rnic.Server(testContext(p.T), b, nil)
	require.NoError(p, err)
	qc := &iwarp.QPConfig{PD: p.pd, RNRWait: -1, IRD: 2 * halfSegments, ORD: 2 * halfSegments, Setup: p.prepares}
	qc.MPA = iwarp.MPAOptions{NoCRC: !p.crc, EarlyResponderSend: true}
	p.qp, err = cr.Accept(testContext(p.T), qc)
	require.NoError(p, err)
	w.WantReply("the Reply accepts", flags)
	require.NoError(p, p.conn.SetDeadline(time.Time{}))
}

// prepares registers what siw uses, for this QP so that siw may invalidate it, and posts the receives.
func (p *capturePath) prepares(_ context.Context, qp *iwarp.QP) error {
	p.mems, p.mrs, p.known = make(map[stag.STag][]byte), make(map[stag.STag]*iwarp.MR), make(map[stag.STag]stag.STag)
	for _, st := range p.ordered() {
		s := p.spans[st]
		mem, access := make([]byte, s.hi-s.lo), anyRemote|stag.LocalWrite
		if p.sinks[st] { // what no peer may write may be placed ahead
			access = stag.LocalWrite
		}
		mr, err := p.pd.RegisterMR(mem, access, &iwarp.MROptions{BaseTO: s.lo, QP: qp})
		if err != nil {
			return err
		}
		p.mems[st], p.mrs[st], p.known[st] = mem, mr, mr.STag()
	}
	p.bufs = p.captureCase.receives()
	for i, buf := range p.bufs {
		mr, err := p.pd.RegisterMR(buf, stag.LocalWrite, nil)
		if err != nil {
			return err
		}
		if err := qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{mr.Slice(0, len(buf))}}); err != nil {
			return err
		}
	}
	return nil
}

// posts posts the Reads.
func (p *capturePath) posts() {
	for i, r := range p.reads {
		wr := iwarp.SendWR{ID: uint64(i), Op: iwarp.OpRDMARead, Remote: iwarp.RemoteBuffer{STag: 1, Len: r.len}}
		if r.len > 0 {
			wr.Local = []iwarp.SGE{p.mrs[r.sink].Slice(int(r.to-p.spans[r.sink].lo), int(r.len))}
		}
		require.NoError(p, p.qp.PostSend(wr))
	}
}

// hears takes what the QP sends until it ends, and signals when all its Read Requests have come.
func (p *capturePath) hears(all chan<- struct{}) {
	var buf []byte
	n, reads := 0, len(p.reads)
	chunk := make([]byte, 16<<10)
	for {
		m, err := p.conn.Read(chunk)
		if err != nil {
			return
		}
		if reads == 0 {
			continue
		}
		buf = append(buf, chunk[:m]...)
		for n = wiretest.FPDULen(buf); n > 0 && reads > 0; n = wiretest.FPDULen(buf) {
			if buf = buf[n:]; reads == 1 {
				close(all)
			}
			reads--
		}
	}
}

// sends sends octets, a chunk at a time, and ends siw's half. The QP may end before it has taken all.
func (p *capturePath) sends(b []byte) {
	for len(b) > 0 {
		n := len(b)
		if p.chunk > 0 {
			n = min(n, max(p.chunk, len(b)/64))
		}
		if _, err := p.conn.Write(b[:n]); err != nil {
			break
		}
		b = b[n:]
	}
	_ = p.conn.(interface{ CloseWrite() error }).CloseWrite()
}

// judges returns the outcome.
func (p *capturePath) judges() *verdict {
	v := &verdict{code: noCode, regions: p.mems}
	var te *iwarp.TerminateError
	switch err := p.qp.Err(); {
	case err == nil:
	case errors.As(err, &te) && !te.Remote:
		v.code = codeOf(te)
	case errors.As(err, &te):
		v.end = te.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		v.end = "ended in the middle"
	default:
		v.end = "ended"
	}
	var wcs [256]iwarp.WC
	for i, wc := range wcs[:p.qp.RecvCQ().Poll(wcs[:])] {
		require.EqualValues(p, i, wc.ID)
		if wc.Status != iwarp.StatusSuccess {
			continue
		}
		m := refMessage{octets: p.bufs[i][:wc.Len]}
		for st, ours := range p.known {
			if wc.STag == ours {
				m.invalidated = st
			}
		}
		v.messages = append(v.messages, m)
	}
	all := wcs[:p.qp.SendCQ().Poll(wcs[:])]
	require.Len(p, all, len(p.reads), "each Read completes")
	for i, wc := range all {
		require.EqualValues(p, i, wc.ID)
		if wc.Status == iwarp.StatusSuccess {
			v.answered++
		}
	}
	return v
}
