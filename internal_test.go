package iwarp

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// What follows serves the tests that are still within the package, and goes with the last of them:
// names for package wiretest, and the fixture that the external tests have in pair_test.go and
// talk_test.go.

const (
	raceEnabled    = wiretest.RaceEnabled
	defaultRequest = wiretest.DefaultRequest
	patience       = wiretest.Patience
	requestKey     = wiretest.RequestKey
	replyKey       = wiretest.ReplyKey
	tellsHeader    = wiretest.DDPHeader
)

var (
	alone       = wiretest.Alone
	hx          = wiretest.Hex
	fpdu        = wiretest.FPDU
	write       = wiretest.Write
	send        = wiretest.Send
	readRequest = wiretest.ReadRequest
	response    = wiretest.ReadResponse
	terminate   = wiretest.Terminate
)

type peer struct {
	testing.TB
	c net.Conn
}

func (p *peer) on() *wiretest.Peer { return &wiretest.Peer{TB: p.TB, Conn: p.c} }

func (p *peer) writes(b []byte)                            { p.on().Write(b) }
func (p *peer) segment() []byte                            { return p.on().Segment() }
func (p *peer) sends(what, header string, payload ...byte) { p.on().SendHex(what, header, payload...) }
func (p *peer) wantSegment(what, header string, payload ...byte) {
	p.on().WantSegment(what, header, payload...)
}
func (p *peer) wantEnd(what string)                   { p.on().WantEOF(what) }
func (p *peer) wantIdle(what string, d time.Duration) { p.on().WantIdle(what, d) }

func (p *peer) wantRequest(rest string, private ...byte) { p.on().WantRequest(rest, private...) }
func (p *peer) replies(rest string, private ...byte)     { p.on().Reply(rest, private...) }

// peers plays one script for each connection, in turn.
func peers(t *testing.T, scripts ...func(p *peer)) (addr string) {
	t.Helper()
	var on []func(p *wiretest.Peer)
	for _, script := range scripts {
		on = append(on, func(p *wiretest.Peer) { script(&peer{TB: p.TB, c: p.Conn}) })
	}
	return wiretest.Serve(t, on...)
}

// responder plays the responder for a QP that is made by Dial with revision 1.
func responder(t testing.TB, r *RNIC, network string, qc *QPConfig) (*peer, *QP) {
	t.Helper()
	if wiretest.LLP != nil {
		a, b := wiretest.LLP(t)
		qp := Establish(t, r, a, qc, nil)
		return &peer{TB: t, c: wiretest.Over(t, b).Conn}, qp
	}
	qc.MPA.Revision = 1
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addr, accepted := wiretest.Accept(t, network, hx("40 01 00 00"))
	qp, err := r.Dial(ctx, network, addr, qc)
	require.NoError(t, err)
	p := <-accepted
	require.NotNil(t, p)
	t.Cleanup(func() { _ = p.Conn.Close() })
	return &peer{TB: t, c: p.Conn}, qp
}

// A side is one end of a test connection, with an RNIC of its own.
type side struct {
	*testing.T
	rnic *RNIC
	pd   *PD
	qp   *QP
}

func newSide(t *testing.T, cfg *Config) *side {
	r, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(), "the RNIC closes") })
	pd, err := r.AllocPD()
	require.NoError(t, err)
	return &side{T: t, rnic: r, pd: pd}
}

// register makes n octets of memory known.
func (s *side) register(n int, access stag.Access, opts *MROptions) ([]byte, *MR) {
	s.Helper()
	b := make([]byte, n)
	mr, err := s.pd.RegisterMR(b, access, opts)
	require.NoError(s, err)
	return b, mr
}

// A pairConfig is how connect makes a pair.
type pairConfig struct {
	network          string
	client, server   QPConfig
	clientR, serverR *Config
	listen           *ListenConfig
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// connect makes two RNICs and a connection between them.
func connect(t *testing.T, pc pairConfig) (client, server *side) {
	t.Helper()
	client, server = newSide(t, pc.clientR), newSide(t, pc.serverR)
	client.connect(server, pc)
	return client, server
}

// connect adds one connection from s to server.
func (s *side) connect(server *side, pc pairConfig) {
	s.Helper()
	if wiretest.LLP != nil {
		a, b := wiretest.LLP(s)
		pc.client.PD, pc.server.PD = s.pd, server.pd
		s.qp, server.qp = ConnectOver(s, a, b, s.rnic, &pc.client, server.rnic, &pc.server)
		return
	}
	ctx := testContext(s.T)
	network := cmp.Or(pc.network, "tcp")
	l, err := server.rnic.Listen(ctx, network, wiretest.Local(network), pc.listen)
	require.NoError(s, err)
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			pc.server.PD = server.pd
			server.qp, err = cr.Accept(ctx, &pc.server)
		}
		accepted <- err
	}()
	pc.client.PD = s.pd
	s.qp, err = s.rnic.Dial(ctx, network, l.Addr().String(), &pc.client)
	require.NoError(s, err)
	require.NoError(s, <-accepted)
}

// bubble runs a test in virtual time. Only networks that are made of memory work in
// it.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

const talkMem = 1 << 12

// A talk is a QP whose peer the test plays. The QP is the initiator and so may send
// at once. All its completions go to one CQ.
type talk struct {
	*side
	p   *peer
	cq  *CQ
	mem []byte
	mr  *MR // all of mem, with every right
}

func newTalk(t *testing.T, qc QPConfig, cfg *Config) *talk {
	t.Helper()
	k := &talk{side: newSide(t, cfg)}
	k.mem, k.mr = k.register(talkMem, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	var err error
	k.cq, err = k.rnic.CreateCQ(256)
	require.NoError(t, err)
	qc.PD = k.pd
	if qc.SendCQ == nil {
		qc.SendCQ = k.cq
	}
	if qc.RecvCQ == nil {
		qc.RecvCQ = k.cq
	}
	k.p, k.qp = responder(t, k.rnic, "pipe", &qc)
	return k
}

// at names the SGE of n octets at off.
func (k *talk) at(off, n int) []SGE { return []SGE{k.mr.Slice(off, n)} }

// posts queues work that must be accepted.
func (k *talk) posts(wrs ...SendWR) {
	k.Helper()
	require.NoError(k, k.qp.PostSend(wrs...))
}

// completes waits for n completions.
func (s *side) completes(cq *CQ, n int) []WC {
	s.Helper()
	ctx := testContext(s.T)
	wcs := make([]WC, n)
	for got := 0; got < n; {
		m, err := cq.Wait(ctx, wcs[got:])
		require.NoError(s, err, "%d completions, after %d of them", n, got)
		got += m
	}
	return wcs
}

// wantNoCompletion makes sure that nothing completes by itself.
func (k *talk) wantNoCompletion(expectation string) {
	k.Helper()
	synctest.Wait()
	require.Zero(k, k.cq.Poll(make([]WC, 1)), expectation)
}

// statuses are those of wcs, in their order.
func statuses(wcs []WC) (s []Status) {
	for _, wc := range wcs {
		s = append(s, wc.Status)
	}
	return s
}

// ids are those of wcs, in their order.
func ids(wcs []WC) (s []uint64) {
	for _, wc := range wcs {
		s = append(s, wc.ID)
	}
	return s
}

// remote is memory that a scripted peer pretends to have.
var remote = RemoteBuffer{STag: 0x0d0e0f00, TO: 0x100, Len: talkMem}

// wantTerminate reads what comes until the Terminate, ends the connection, waits for
// the end of the QP, and compares the code.
func (k *talk) wantTerminate(expectation string, code uint16) {
	k.Helper()
	for {
		ulpdu := k.p.segment()
		if ulpdu[0]&0x80 == 0 && ulpdu[1]&0x0f == 7 {
			require.Equal(k, []byte{byte(code >> 8), byte(code)}, ulpdu[18:20], expectation)
			break
		}
	}
	k.p.wantEnd("nothing follows the Terminate")
	require.NoError(k, k.p.c.Close())
	<-k.qp.Done()
}

const lendable = stag.LocalWrite | stag.MWBind

// lends binds a new window to n octets of mr, and waits until it is bound.
func (s *side) lends(qp *QP, mr *MR, off, n int, access stag.Access, to uint64) *MW {
	s.Helper()
	mw, err := s.pd.AllocMW()
	require.NoError(s, err)
	s.binds(qp, mw, mr.Slice(off, n), access, to)
	return mw
}

func (s *side) binds(qp *QP, mw *MW, sge SGE, access stag.Access, to uint64) {
	s.Helper()
	_, err := qp.do(testContext(s.T), SendWR{Op: OpBind, MW: mw, Local: []SGE{sge}, Access: access, Remote: RemoteBuffer{TO: to}})
	require.NoError(s, err)
}

// wantEvent takes the next event, which must be about the QP.
func (s *side) wantEvent(kind EventKind) Event {
	s.Helper()
	select {
	case e := <-s.rnic.Events():
		require.Equal(s, kind, e.Kind)
		require.Same(s, s.qp, e.QP)
		return e
	case <-time.After(patience):
		require.FailNow(s, "no event", "want %v", kind)
	}
	return Event{}
}

// wantAllRefused makes sure that an ended QP refuses everything and says why.
func (s *side) wantAllRefused(cause error) {
	s.Helper()
	ctx := testContext(s.T)
	_, recvErr := s.qp.Recv(ctx, SGE{})
	_, readErr := s.qp.Remote(RemoteBuffer{Len: 9}).ReadAt(make([]byte, 4), 0)
	_, writeErr := s.qp.Remote(RemoteBuffer{Len: 9}).WriteAt(make([]byte, 4), 0)
	for what, err := range map[string]error{
		"PostSend":  s.qp.PostSend(SendWR{Op: OpSend}),
		"PostRecv":  s.qp.PostRecv(RecvWR{}),
		"Send":      s.qp.Send(ctx),
		"RDMAWrite": s.qp.RDMAWrite(ctx, RemoteBuffer{}),
		"RDMARead":  s.qp.RDMARead(ctx, SGE{}, RemoteBuffer{}),
		"Recv":      recvErr,
		"ReadAt":    readErr,
		"WriteAt":   writeErr,
	} {
		require.ErrorIs(s, err, net.ErrClosed, what)
		if cause != nil {
			require.ErrorIs(s, err, cause, what)
		}
	}
	require.NoError(s, s.qp.Close(), "closing what has ended does nothing")
	require.NoError(s, s.qp.Abort())
}

// dialTo connects a QP of s to scripts.
func (s *side) dialTo(qc QPConfig, scripts ...func(p *peer)) error {
	s.Helper()
	qc.PD = s.pd
	var err error
	s.qp, err = s.rnic.Dial(testContext(s.T), "pipe", peers(s.T, scripts...), &qc)
	return err
}

func fillRandom(b []byte) {
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
}

// over connects s to server over a connection that the application has made.
func (s *side) over(server *side, conns func() (a, b net.Conn)) {
	s.Helper()
	ctx := testContext(s.T)
	a, b := conns()
	accepted := make(chan error, 1)
	go func() {
		cr, err := server.rnic.Server(ctx, b, nil)
		if err == nil {
			server.qp, err = cr.Accept(ctx, &QPConfig{PD: server.pd})
		}
		accepted <- err
	}()
	var err error
	s.qp, err = s.rnic.Client(ctx, a, &QPConfig{PD: s.pd})
	require.NoError(s, err)
	require.NoError(s, <-accepted)
}
