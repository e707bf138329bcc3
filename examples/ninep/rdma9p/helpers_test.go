package rdma9p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 45 * time.Second

// within returns a context that ends when a test has waited too long.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// A world is a running Serve, and an RNIC for its peers.
type world struct {
	t     *testing.T
	rnic  *iwarp.RNIC
	pd    *iwarp.PD
	l     *iwarp.Listener
	stop  context.CancelFunc
	ended chan error     // gets the result of Serve
	qps   chan *iwarp.QP // the server's
	log   *record
}

// serve starts Serve, which ends with the test. The name in addr is only for in-process networks.
func serve(t *testing.T, network, addr string, h Handler, cfg Config) *world {
	t.Helper()
	return serveOn(t, nil, network, addr, h, cfg)
}

// serveOn is serve with the configuration of the RNIC.
func serveOn(t *testing.T, rc *iwarp.Config, network, addr string, h Handler, cfg Config) *world {
	t.Helper()
	w := &world{t: t, ended: make(chan error, 1), qps: make(chan *iwarp.QP, 64), log: new(record)}
	var err error
	w.rnic, err = iwarp.Open(rc)
	require.NoError(t, err)
	w.pd, err = w.rnic.AllocPD()
	require.NoError(t, err)
	w.l, err = w.rnic.Listen(t.Context(), network, addr, nil)
	require.NoError(t, err)
	cfg.QP.PD = w.pd
	cfg.QP.Setup = func(_ context.Context, qp *iwarp.QP) error {
		w.qps <- qp
		return nil
	}
	cfg.Logger = slog.New(slog.NewTextHandler(w.log, nil))
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() { w.ended <- Serve(ctx, w.l, h, &cfg) }()
	t.Cleanup(func() {
		if s, ok := h.(*script); ok {
			s.done()
		}
		stop()
		if err := <-w.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
		if err := w.rnic.Close(); err != nil {
			t.Errorf("RNIC: %v", err)
		}
	})
	return w
}

// A record is a log record.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// A peer is a client with scripted messages. Like Linux, it posts a receive for each answer before the request.
type peer struct {
	t    *testing.T
	qp   *iwarp.QP
	pd   *iwarp.PD
	mem  []byte
	mr   *iwarp.MR
	size int
	next int
	sent []*iwarp.MR
	wcs  []iwarp.WC // completions that recv has taken, and not returned
}

// peerDepth is how many answers a peer can have outstanding.
const peerDepth = 300

// dial connects a peer whose receives hold msize octets.
func (w *world) dial(msize int) *peer {
	w.t.Helper()
	p, err := w.tryDial(&iwarp.QPConfig{}, msize)
	require.NoError(w.t, err)
	return p
}

func (w *world) tryDial(qc *iwarp.QPConfig, msize int) (*peer, error) {
	w.t.Helper()
	p := &peer{t: w.t, pd: w.pd, mem: make([]byte, peerDepth*msize), size: msize}
	qc.PD, qc.SendDepth, qc.RecvDepth, qc.IRD, qc.ORD = w.pd, peerDepth, peerDepth, -1, -1
	qc.MPA.ClientServer = true // as Linux: no RTR
	addr := w.l.Addr()
	qp, err := w.rnic.Dial(within(w.t), addr.Network(), addr.String(), qc)
	if err != nil {
		return nil, err
	}
	p.qp = qp
	p.mr, err = w.pd.RegisterMR(p.mem, stag.LocalWrite, nil)
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		qp.Abort()
		<-qp.Done()
		for _, mr := range append(p.sent, p.mr) {
			if err := mr.Close(); err != nil {
				w.t.Errorf("region: %v", err)
			}
		}
	})
	return p, nil
}

// post posts the receive for an answer.
func (p *peer) post() {
	p.t.Helper()
	i := p.next % peerDepth
	p.next++
	require.NoError(p.t, p.qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{p.mr.Slice(i*p.size, p.size)}}))
}

// send posts a receive and sends a message.
func (p *peer) send(msg []byte) {
	p.t.Helper()
	p.post()
	require.NoError(p.t, p.sendOnly(msg))
}

// sendOnly sends a message, and does not wait.
func (p *peer) sendOnly(msg []byte) error {
	wr := iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled}
	if len(msg) > 0 {
		mr, err := p.pd.RegisterMR(bytes.Clone(msg), stag.LocalWrite, nil)
		require.NoError(p.t, err)
		p.sent = append(p.sent, mr)
		wr.Local = []iwarp.SGE{mr.Slice(0, len(msg))}
	}
	return p.qp.PostSend(wr)
}

// recv waits for an answer.
func (p *peer) recv() []byte {
	p.t.Helper()
	if len(p.wcs) == 0 {
		p.wcs = make([]iwarp.WC, 16)
		n, err := p.qp.RecvCQ().Wait(within(p.t), p.wcs)
		require.NoError(p.t, err, "no answer: %v", p.qp.Err())
		p.wcs = p.wcs[:n]
	}
	wc := p.wcs[0]
	p.wcs = p.wcs[1:]
	require.NoError(p.t, wc.Err())
	msg := bytes.Clone(p.mem[int(wc.ID)*p.size:][:wc.Len])
	require.Equal(p.t, len(msg), int(binary.LittleEndian.Uint32(msg)), "one Send is one message")
	return msg
}

// call sends a message and waits for the answer.
func (p *peer) call(msg []byte) []byte {
	p.t.Helper()
	p.send(msg)
	return p.recv()
}

// version begins a session, and returns its msize.
func (p *peer) version(msize uint32) uint32 {
	p.t.Helper()
	got, version, ok := parseVersion(p.call(tversionMsg(msize, "9P2000.L")))
	require.True(p.t, ok)
	require.Equal(p.t, "9P2000.L", version)
	return got
}

// close ends the connection, and returns its counters.
func (p *peer) close() iwarp.QPStats {
	p.t.Helper()
	require.NoError(p.t, p.qp.Close())
	<-p.qp.Done()
	return p.qp.Stats()
}

// wantEnd waits until the other side has ended the connection.
func (p *peer) wantEnd(why string) {
	p.t.Helper()
	select {
	case <-p.qp.Done():
	case <-within(p.t).Done():
		require.Fail(p.t, "the connection has not ended: "+why)
	}
}

// message makes a message.
func message(typ msgType, tag uint16, body ...byte) []byte {
	return append(appendHeader(nil, uint32(headerSize+len(body)), typ, tag), body...)
}

func tversionMsg(msize uint32, version string) []byte {
	return message(tversion, noTag, versionBody(msize, version)...)
}

func versionBody(msize uint32, version string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, msize)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(version)))
	return append(b, version...)
}

// numbers returns a body of 4-octet numbers.
func numbers(n ...uint32) []byte {
	var b []byte
	for _, v := range n {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// ebadf is a handler's answer if a fid is not in use.
const ebadf errno = 9

func rerror(tag uint16, e errno) []byte { return appendError(nil, tag, e) }

// readMessage reads a message as a handler does.
func readMessage(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	msg := make([]byte, binary.LittleEndian.Uint32(size[:]))
	copy(msg, size[:])
	_, err := io.ReadFull(r, msg[4:])
	return msg, err
}

// A script is a handler whose answers come from the test, and go to the latest connection. It accepts each Tversion
// itself.
type script struct {
	t        *testing.T
	requests chan []byte // all but Tversions
	versions chan []byte
	ended    chan struct{} // gets a token when a stream of requests has ended
	release  chan struct{} // Handle returns when it is closed

	mu sync.Mutex
	w  io.Writer
}

func newScript(t *testing.T) *script {
	return &script{
		t: t, requests: make(chan []byte, 1000), versions: make(chan []byte, 1000),
		ended: make(chan struct{}, 16), release: make(chan struct{}),
	}
}

// done lets Handle return at the end of the stream.
func (s *script) done() {
	select {
	case <-s.release:
	default:
		close(s.release)
	}
}

func (s *script) Handle(t io.ReadCloser, r io.WriteCloser) error {
	s.mu.Lock()
	s.w = r
	s.mu.Unlock()
	for {
		msg, err := readMessage(t)
		if err != nil {
			break
		}
		if parseHeader(msg).typ == tversion {
			s.versions <- msg
			_, _ = r.Write(message(rversion, parseHeader(msg).tag, msg[headerSize:]...))
			continue
		}
		s.requests <- msg
	}
	s.ended <- struct{}{}
	<-s.release
	return nil
}

func (s *script) write(msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.w.Write(msg)
	return err
}

// answer writes an answer.
func (s *script) answer(msg []byte) {
	s.t.Helper()
	require.NoError(s.t, s.write(msg))
}

// next waits for the handler's next request.
func (s *script) next() []byte {
	s.t.Helper()
	select {
	case msg := <-s.requests:
		return msg
	case <-within(s.t).Done():
		require.Fail(s.t, "no request has come")
		return nil
	}
}

// An echo is a handler that answers each request at once, with an answer of the same length.
type echo struct{}

func (echo) Handle(t io.ReadCloser, r io.WriteCloser) error {
	for {
		msg, err := readMessage(t)
		if err != nil {
			return nil
		}
		msg[4]++
		if _, err := r.Write(msg); err != nil {
			return nil
		}
	}
}

// A handlerFunc is a handler.
type handlerFunc func(t io.ReadCloser, r io.WriteCloser) error

func (f handlerFunc) Handle(t io.ReadCloser, r io.WriteCloser) error { return f(t, r) }

// stopped ends Serve and waits until it has returned.
func (w *world) stopped() {
	w.t.Helper()
	w.stop()
	select {
	case err := <-w.ended:
		w.ended <- err
	case <-within(w.t).Done():
		require.Fail(w.t, "Serve has not returned")
	}
}
