package rpcrdma

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

var octets = octettest.Counting

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// A host is an RNIC with a listener from which the test accepts.
type host struct {
	testing.TB
	server, client *iwarp.RNIC
	l              *iwarp.Listener
	cfg            Config
}

// anyArgument is NFSv3, with which every argument may come by a Read chunk: most tests have none of NFS.
type anyArgument struct{}

func (anyArgument) Result(prog, vers, proc uint32, reply []byte) (off, n int, ok bool) {
	return NFSv3{}.Result(prog, vers, proc, reply)
}

// newHost makes two RNICs. The network is the in-process pipe, or one with an address.
func newHost(t testing.TB, network string, cfg Config) *host {
	t.Helper()
	if cfg.Binding == nil {
		cfg.Binding = anyArgument{}
	}
	h := &host{TB: t, server: open(t), client: open(t), cfg: cfg}
	where := ""
	if network != "pipe" {
		where = "127.0.0.1:0"
	}
	l, err := h.server.Listen(context.Background(), network, where, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	h.l, h.cfg.RNIC = l, h.server
	return h
}

func open(t testing.TB) *iwarp.RNIC {
	t.Helper()
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rnic.Close(), "the RNIC closes") })
	return rnic
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// A client is a client that the test emulates, on a QP.
type client struct {
	testing.TB
	rnic  *iwarp.RNIC
	pd    *iwarp.PD
	qp    *iwarp.QP
	conn  *Conn // of the server
	xid   uint32
	inbox []byte
	into  *iwarp.MR
	out   *iwarp.MR
	mem   []byte // of out
	sent  int    // octets of it that post has used
}

// post posts a message, and does not wait until it was sent.
func (c *client) post(b []byte) {
	c.Helper()
	require.NoError(c, c.qp.PostSend(c.puts(b)))
}

// puts returns the work request of a Send.
func (c *client) puts(b []byte) iwarp.SendWR {
	from := c.sent
	c.sent += copy(c.mem[from:], b)
	return iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{c.out.Slice(from, len(b))}}
}

const (
	clientReceives = 64
	clientReceive  = 64 << 10
)

// linux is the private data of Linux.
var linux = wire.Private{Invalidate: true, Send: 4096, Receive: 4096}.Append(nil)

// dial connects a client, with the private data.
func (h *host) dial(private []byte, change ...func(*iwarp.QPConfig)) (*client, error) {
	h.Helper()
	pd, err := h.client.AllocPD()
	require.NoError(h, err)
	c := &client{TB: h.TB, rnic: h.client, pd: pd, xid: 0x1000, mem: make([]byte, clientReceive)}
	c.inbox = make([]byte, clientReceives*clientReceive)
	c.into = c.register(c.inbox, stag.LocalWrite)
	c.out = c.register(c.mem, 0)
	cfg := &iwarp.QPConfig{
		PD: pd, IRD: 128, ORD: -1, SendDepth: 1024, RecvDepth: clientReceives, PrivateData: private,
		MPA: iwarp.MPAOptions{ClientServer: true},
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			for i := range clientReceives {
				if err := qp.PostRecv(c.receive(i)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for _, f := range change {
		f(cfg)
	}
	c.qp, err = h.client.Dial(within(h.TB), h.l.Addr().Network(), h.l.Addr().String(), cfg)
	if err != nil {
		return nil, err
	}
	h.Cleanup(func() { _ = c.qp.Abort() })
	return c, nil
}

func (c *client) receive(i int) iwarp.RecvWR {
	return iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{c.into.Slice(i*clientReceive, clientReceive)}}
}

// register registers memory of the client's.
func (c *client) register(b []byte, access stag.Access) *iwarp.MR {
	c.Helper()
	mr, err := c.pd.RegisterMR(b, access, nil)
	require.NoError(c, err)
	return mr
}

// accepts makes a Conn of the next client. It closes the channel if that fails.
func (h *host) accepts() <-chan *Conn {
	accepted := make(chan *Conn, 1)
	go func() {
		defer close(accepted)
		cr, err := h.l.Accept(within(h.TB))
		if err != nil {
			return
		}
		if c, err := Accept(within(h.TB), cr, &h.cfg); err == nil {
			accepted <- c
		}
	}()
	return accepted
}

// connect makes a Conn, and its client.
func (h *host) connect(private []byte, change ...func(*iwarp.QPConfig)) *client {
	h.Helper()
	accepted := h.accepts()
	c, err := h.dial(private, change...)
	require.NoError(h, err)
	c.conn = <-accepted
	require.NotNil(h, c.conn)
	h.Cleanup(func() {
		_ = c.conn.qp.Abort()
		<-c.conn.Done()
	})
	return c
}

// connected makes a host with a client like Linux's.
func connected(t testing.TB, cfg Config) *client {
	t.Helper()
	return newHost(t, "pipe", cfg).connect(linux)
}

// send sends a message.
func (c *client) send(parts ...[]byte) {
	c.Helper()
	require.NoError(c, c.trySend(parts...))
}

func (c *client) trySend(parts ...[]byte) error {
	n := copy(c.mem, slices.Concat(parts...))
	return c.qp.Send(within(c.TB), c.out.Slice(0, n))
}

// A message is a message of the server.
type message struct {
	octets      []byte
	header      wire.Header
	body        []byte
	invalidated stag.STag
}

// recv waits for the next message, and posts its receive again.
func (c *client) recv() *message {
	c.Helper()
	m, err := c.tryRecv()
	require.NoError(c, err)
	return m
}

func (c *client) tryRecv() (*message, error) {
	var wcs [1]iwarp.WC
	if _, err := c.qp.RecvCQ().Wait(within(c.TB), wcs[:]); err != nil {
		return nil, err
	}
	wc := wcs[0]
	if wc.Status != iwarp.StatusSuccess {
		return nil, wc.Err()
	}
	i := int(wc.ID)
	m := &message{octets: slices.Clone(c.inboxOf(i)[:wc.Len]), invalidated: wc.STag}
	if err := c.qp.PostRecv(c.receive(i)); err != nil && !errors.Is(err, net.ErrClosed) {
		return nil, err
	}
	n, err := m.header.Parse(m.octets)
	require.True(c, err == nil || errors.Is(err, wire.ErrVersion), "%v", err)
	m.body = m.octets[n:]
	return m, nil
}

func (c *client) inboxOf(i int) []byte { return c.inbox[i*clientReceive : (i+1)*clientReceive] }

// header makes the header of a call, with the next XID.
func (c *client) header() *wire.Header {
	c.xid++
	return &wire.Header{XID: c.xid, Credits: 128}
}

// rpc is the RPC call of a procedure of NFSv3, with arguments.
func rpc(xid, proc uint32, args ...byte) []byte {
	var b []byte
	for _, w := range []uint32{xid, 0, 2, programNFS, 3, proc, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return append(b, args...)
}

// accepted is the beginning of the RPC reply of a call that was executed.
func accepted(xid uint32) []byte {
	var b []byte
	for _, w := range []uint32{xid, 1, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// readReply is the RPC reply of READ, without attributes.
func readReply(xid uint32, data []byte) []byte {
	b := accepted(xid)
	n := uint32(len(data))
	for _, w := range []uint32{0, 0, n, 1, n} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	b = append(b, data...)
	return append(b, make([]byte, wire.Padded(len(data))-len(data))...)
}

// opaque is an opaque of XDR.
func opaque(b []byte) []byte {
	x := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	return append(append(x, b...), make([]byte, wire.Padded(len(b))-len(b))...)
}

// regionTO is the offset at which memory of clients begins: Linux's offsets may have bit 63.
const regionTO = 1<<63 + 0x1000

// A region is memory that the client names in calls.
type region struct {
	mr  *iwarp.MR
	mem []byte
}

// exposes registers memory that the server may read and write, at offsets with bit 63.
func (c *client) exposes(n int, qp bool) *region {
	c.Helper()
	r := &region{mem: make([]byte, n)}
	opts := &iwarp.MROptions{BaseTO: regionTO}
	if qp {
		opts.QP = c.qp
	}
	mr, err := c.pd.RegisterMR(r.mem, stag.LocalWrite|stag.RemoteRead|stag.RemoteWrite, opts)
	require.NoError(c, err)
	r.mr = mr
	return r
}

// segment is a part of the memory.
func (r *region) segment(off, n int) wire.Segment {
	return wire.Segment{Handle: uint32(r.mr.STag()), Length: uint32(n), Offset: regionTO + uint64(off)}
}

// chunk cuts the memory at some places.
func (r *region) chunk(cuts ...int) (c wire.Chunk) {
	from := 0
	for _, to := range append(cuts, len(r.mem)) {
		c = append(c, r.segment(from, to-from))
		from = to
	}
	return c
}

// reads makes a Read chunk of it.
func (r *region) reads(position int, cuts ...int) (all []wire.ReadSegment) {
	for _, s := range r.chunk(cuts...) {
		all = append(all, wire.ReadSegment{Position: uint32(position), Segment: s})
	}
	return all
}

// next takes a call on the side of the server.
func (c *client) next() *Call {
	c.Helper()
	k, err := c.conn.ReadCall(within(c.TB))
	require.NoError(c, err)
	return k
}

// reply answers a call.
func (c *client) reply(k *Call, msg ...[]byte) {
	c.Helper()
	require.NoError(c, k.Reply(within(c.TB), msg...))
}

// ended waits for the end of the connection on both sides, and returns the error of the server's.
func (c *client) ended() error {
	c.Helper()
	<-c.conn.Done()
	<-c.qp.Done()
	return c.conn.Err()
}

// failure expects an error of the transport.
func (c *client) failure(xid uint32, words ...uint32) {
	c.Helper()
	m := c.recv()
	require.Equal(c, wire.Failure, m.header.Proc, "%x", m.octets)
	require.Equal(c, xid, m.header.XID)
	require.EqualValues(c, 32, m.header.Credits)
	var want []byte
	for _, w := range words {
		want = binary.BigEndian.AppendUint32(want, w)
	}
	require.Equal(c, want, m.body)
	require.Zero(c, m.invalidated, "a plain Send")
}

// serves shows that the connection still works.
func (c *client) serves() {
	c.Helper()
	h := c.header()
	c.send(h.Append(nil), rpc(h.XID, 0))
	k := c.next()
	require.Equal(c, rpc(h.XID, 0), k.Message())
	c.reply(k, accepted(h.XID))
	require.Equal(c, accepted(h.XID), c.recv().body)
}
