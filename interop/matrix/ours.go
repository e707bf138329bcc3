package matrix

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// An end is our end of a connection.
type end struct {
	t    *T
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	qp   *iwarp.QP
	port int // of the listener, which is ours or the peer's
	// listener is set if the peer is the initiator.
	listener *iwarp.Listener
	// peerPD is the private data of the Request, from either side, as it arrived.
	// connectPD is the private data of our Reply, as the peer reports it.
	peerPD, connectPD []byte
}

// The defaults of the library, which suit an idle machine.
const (
	closeTimeout    = 5 * time.Second
	setupTimeout    = 5 * time.Second
	progressTimeout = 2 * time.Second
)

// open opens a new RNIC for the case.
func (t *T) open() *end {
	rnic, err := iwarp.Open(&iwarp.Config{CloseTimeout: t.pace.Stretch(closeTimeout)})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := rnic.Close(); err != nil {
			t.Errorf("close the RNIC: %v", err)
		}
	})
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	return &end{t: t, rnic: rnic, pd: pd, port: basePort}
}

// config completes the QPConfig of a case.
func (e *end) config(qc iwarp.QPConfig) *iwarp.QPConfig {
	qc.PD = e.pd
	if qc.RNRWait == 0 {
		qc.RNRWait = e.t.pace.Stretch(10 * time.Second) // the guest is slow
	}
	return &qc
}

func hostPort(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(basePort)) }

// at returns an address with the port of this end.
func (e *end) at(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(e.port)) }

// A setting says how to connect a pair.
type setting struct {
	options string // of the peer
	qc      iwarp.QPConfig
	peerPD  []byte // what the peer sends as private data
}

// connect connects our end and the peer, in the role of the case. An end that expects a message
// posts a receive before it asks the other end to send.
func (t *T) connect(s setting) (*end, *peer) {
	e, p := t.open(), t.peer(s.options)
	if t.Role == Initiator {
		p.do("listen %s %d", PeerIP, basePort)
		t.initiate(e, p, s)
	} else {
		t.respond(e, p, s)
	}
	return e, p
}

// initiate dials the peer, which listens.
func (t *T) initiate(e *end, p *peer, s setting) {
	var err error
	dialed := make(chan struct{})
	go func() {
		defer close(dialed)
		e.qp, err = e.rnic.Dial(t.Ctx, "tcp", e.at(PeerIP), e.config(s.qc))
	}()
	e.peerPD = p.privateData(p.do("request"))
	p.do("accept %s", hexOf(s.peerPD))
	<-dialed
	require.NoError(t, err, "Dial")
}

// respond accepts the peer's connection, and receives the first message that RFC 5044 section
// 7.1.2 requires from an initiator before the responder may send.
func (t *T) respond(e *end, p *peer, s setting) {
	e.listen()
	t.respondOnce(e, p, s)
	e.hello(p)
}

// listen makes the listener of the case.
func (e *end) listen() {
	var err error
	e.listener, err = e.rnic.Listen(e.t.Ctx, "tcp", e.at(OurIP), &iwarp.ListenConfig{
		SetupTimeout: e.t.pace.Stretch(setupTimeout), ProgressTimeout: e.t.pace.Stretch(progressTimeout),
	})
	require.NoError(e.t, err, "Listen")
	l := e.listener
	e.t.Cleanup(func() { _ = l.Close() }) // closing the RNIC would suffice
}

// respondOnce accepts one connection of the peer.
func (t *T) respondOnce(e *end, p *peer, s setting) {
	p.do("resolve %s %d", OurIP, e.port)
	answer := make(chan string, 1)
	go func() { answer <- p.try("connect %s", hexOf(s.peerPD)) }()
	cr, err := e.listener.Accept(t.Ctx)
	require.NoError(t, err, "Accept")
	e.peerPD = cr.PrivateData()
	e.qp, err = cr.Accept(t.Ctx, e.config(s.qc))
	require.NoError(t, err, "accept the request")
	said := <-answer
	rest, ok := strings.CutPrefix(said, "ok ")
	require.True(t, ok, "the peer is connected, but says %q", said)
	e.connectPD = p.privateData(strings.Fields(rest))
}

// helloBuffer is the peer's buffer for that first message.
const helloBuffer = 15

func (e *end) hello(p *peer) {
	p.mr(helloBuffer, 1, localWrite)
	_, mr := e.mr(1, stag.LocalWrite)
	e.recv(0, mr.Slice(0, 1))
	p.send(0, helloBuffer, 0, 1, "-", 0)
	p.good(1)
	e.received(1)
}

// mr registers memory of our end.
func (e *end) mr(n int, access stag.Access) ([]byte, *iwarp.MR) {
	b := make([]byte, n)
	mr, err := e.pd.RegisterMR(b, access, nil)
	require.NoError(e.t, err)
	return b, mr
}

const ourAll = stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead

func (e *end) post(wrs ...iwarp.SendWR) { require.NoError(e.t, e.qp.PostSend(wrs...)) }

func (e *end) recv(id uint64, into iwarp.SGE) {
	require.NoError(e.t, e.qp.PostRecv(iwarp.RecvWR{ID: id, Local: []iwarp.SGE{into}}))
}

// take waits for n completions of a queue.
func (e *end) take(cq *iwarp.CQ, n int) []iwarp.WC {
	all := make([]iwarp.WC, n)
	for have := 0; have < n; {
		m, err := cq.Wait(e.t.Ctx, all[have:])
		require.NoError(e.t, err, "%d completions of %d", have, n)
		have += m
	}
	return all
}

// good waits for n completions, all of which must be successes.
func (e *end) good(cq *iwarp.CQ, n int) []iwarp.WC {
	wcs := e.take(cq, n)
	for i := range wcs {
		require.NoError(e.t, wcs[i].Err(), "completion %d of %d", i, n)
	}
	return wcs
}

func (e *end) sent(n int) []iwarp.WC     { return e.good(e.qp.SendCQ(), n) }
func (e *end) received(n int) []iwarp.WC { return e.good(e.qp.RecvCQ(), n) }

// fillPattern and checkPattern do what the peer's commands fill and check do.
func fillPattern(b []byte, seed int) {
	for i := range b {
		b[i] = pattern(i, seed)
	}
}

func pattern(i, seed int) byte { return byte(seed*167 + i*13 + (i>>8)*7 + i>>16) }

func (e *end) checkPattern(b []byte, seed int, what string) {
	want := make([]byte, len(b))
	fillPattern(want, seed)
	if bytes.Equal(b, want) {
		return
	}
	for i := range b {
		if b[i] != want[i] {
			require.FailNow(e.t, "data differs", "%s: octet %d of %d is %02x, want %02x", what, i, len(b), b[i], want[i])
		}
	}
}

// finish ends the connection from our side and expects a graceful end on both.
func (e *end) finish(p *peer) {
	require.NoError(e.t, e.qp.Close(), "our end closes gracefully")
	p.do("disconnected")
	p.do("destroy")
	if e.listener != nil {
		require.NoError(e.t, e.listener.Close())
	}
}
