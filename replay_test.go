package iwarp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// TestSiwIsAnswered replays one half of each capture of Linux siw against a QP that does the work of the other end.
// Everything must be accepted, every octet must end up where it did then, and the QP must send what siw sent, except for
// our STags.
func TestSiwIsAnswered(t *testing.T) {
	for _, name := range []string{
		"rping", "rping_64k", "ib_write_bw", "ib_read_bw", "ib_send_bw", "knob_default", "knob_crc",
		"knob_crc_strict", "knob_gso", "knob_p2p", "knob_p2p_crc", "knob_v1",
	} {
		clients, servers := captured(t, name+".pcap")
		for i := range clients {
			match(&clients[i], &servers[i])
			require.NotEmpty(t, clients[i].messages, "%s holds something to replay", name)
			t.Run(name+"/as responder", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newReplay(t, &clients[i], &servers[i]).asResponder() })
			})
			t.Run(name+"/as initiator", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newReplay(t, &servers[i], &clients[i]).asInitiator() })
			})
		}
	}
}

// A replay is one connection: siw's octets are sent to us. ours is what the other end sent then.
type replay struct {
	*side
	siw, ours *half
	conn      net.Conn // siw's end
	crc       bool
	mrs       map[stag.STag]*span // regions of ours, by the STags that siw knew them by

	mu   sync.Mutex
	sent [][]byte // ULPDUs that came from us
	err  error
}

// A span is a region that siw reaches, with its expected contents.
type span struct {
	lo, hi    uint64 // TOs
	mem, want []byte
	mr        *iwarp.MR
}

func newReplay(t *testing.T, siw, ours *half) *replay {
	r := &replay{side: newSide(t, nil), siw: siw, ours: ours, mrs: map[stag.STag]*span{}}
	r.crc = siw.frame[16]&0x40 != 0
	for _, m := range siw.messages {
		switch m.op {
		case opWrite:
			r.covers(m.stag, m.to, len(m.data))
		case opRead:
			r.covers(m.src, m.srcTO, int(m.size))
		}
	}
	for _, m := range ours.of(opRead) {
		r.covers(m.stag, m.to, int(m.size))
	}
	for _, s := range r.mrs {
		s.mem, s.want = make([]byte, s.hi-s.lo), make([]byte, s.hi-s.lo)
		var err error
		s.mr, err = r.pd.RegisterMR(s.mem, anyRemote, &iwarp.MROptions{BaseTO: s.lo})
		require.NoError(t, err)
	}
	return r
}

// covers records that siw reaches n octets at to.
func (r *replay) covers(st stag.STag, to uint64, n int) {
	if n == 0 {
		return
	}
	s := r.mrs[st]
	if s == nil {
		s = &span{lo: to, hi: to}
		r.mrs[st] = s
	}
	s.lo, s.hi = min(s.lo, to), max(s.hi, to+uint64(n))
}

func (s *span) at(b []byte, to uint64, n int) []byte { return b[to-s.lo:][:n] }

// config makes the QP send the frame that the other end sent then.
func (r *replay) config() *iwarp.QPConfig {
	f := r.ours.frame
	qc := &iwarp.QPConfig{PD: r.pd, SendDepth: 4096, RecvDepth: 4096}
	qc.MPA = iwarp.MPAOptions{NoCRC: f[16]&0x40 == 0, Revision: int(f[17]), MaxULPDU: r.ours.largest()}
	if len(f) >= 24 {
		qc.IRD, qc.ORD = int(f[20])&0x3f<<8|int(f[21]), int(f[22])&0x3f<<8|int(f[23])
	}
	if qc.IRD == 0 {
		qc.IRD = -1
	}
	if qc.ORD == 0 {
		qc.ORD = -1
	}
	if f[17] == 1 { // nothing was negotiated
		qc.IRD, qc.ORD = 1, 1
	}
	return qc
}

func (r *replay) asResponder() {
	a, b := transport.Pipe(transport.PipeOptions{})
	r.conn = a
	p := &wiretest.Peer{TB: r.T, Conn: a}
	p.Write(r.siw.frame)
	cr, err := r.rnic.Server(testContext(r.T), b, nil)
	require.NoError(r, err, "siw's Request is taken")
	r.qp, err = cr.Accept(testContext(r.T), r.config())
	require.NoError(r, err)
	p.WantOctets("our Reply is what siw's was", withoutReserved(r.ours.frame))
	r.run()
}

func (r *replay) asInitiator() {
	a, b := transport.Pipe(transport.PipeOptions{})
	r.conn = a
	p := &wiretest.Peer{TB: r.T, Conn: a}
	connected := make(chan error, 1)
	go func() {
		var err error
		r.qp, err = r.rnic.Client(testContext(r.T), b, r.config())
		connected <- err
	}()
	request := p.Read(len(r.ours.frame))
	require.Equal(r, withoutReserved(r.ours.frame)[:20], request[:20], "our Request is what siw's was, but for what it offers")
	p.Write(r.siw.frame)
	require.NoError(r, <-connected, "siw's Reply is taken")
	r.run()
}

// withoutReserved clears the reserved flags, which siw uses for itself.
func withoutReserved(frame []byte) []byte {
	frame = bytes.Clone(frame)
	frame[16] &= 0xf0
	return frame
}

// run plays both halves.
func (r *replay) run() {
	received := r.postReceives()
	listening := make(chan struct{})
	go func() { defer close(listening); r.listen() }()
	r.post()
	r.play()
	r.await(func() bool { return len(r.sent) >= len(r.ours.ulpdus) }, "all that siw sent then is sent by us")
	received()
	require.NoError(r, r.conn.(interface{ CloseWrite() error }).CloseWrite())
	<-r.qp.Done()
	<-listening
	require.NoError(r, r.err, "our octets are FPDUs")
	require.NoError(r, r.qp.Err(), "the connection ends gracefully")
	require.Equal(r, iwarp.StateIdle, r.qp.State())
	for st, s := range r.mrs {
		require.True(r, bytes.Equal(s.want, s.mem), "the region that siw knew as %v holds what it did then", st)
	}
	r.compare()
}

// postReceives posts a receive for every Send of siw. The returned function checks the received messages.
func (r *replay) postReceives() (check func()) {
	sends := r.siw.of(opSend)
	bufs := make([][]byte, len(sends))
	for i, m := range sends {
		buf, mr := r.register(len(m.data)+1, stag.LocalWrite, nil)
		bufs[i] = buf
		require.NoError(r, r.qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{mr.Slice(0, len(buf))}}))
	}
	return func() {
		var wcs [1]iwarp.WC
		for i, m := range sends {
			_, err := r.qp.RecvCQ().Wait(testContext(r.T), wcs[:])
			require.NoError(r, err)
			require.NoError(r, wcs[0].Err())
			require.Equal(r, uint64(i), wcs[0].ID)
			require.Equal(r, m.data, bufs[i][:wcs[0].Len], "a Send brings what it did then")
		}
	}
}

// post posts the work of the other end, in its order. The QP makes the answers itself.
func (r *replay) post() {
	for i, m := range r.ours.messages {
		wr := iwarp.SendWR{ID: uint64(i), Flags: iwarp.Unsignaled}
		switch {
		case m.op == opResponse:
			continue
		case m.op == opRead:
			s := r.mrs[m.stag]
			wr.Op, wr.Local = iwarp.OpRDMARead, []iwarp.SGE{s.mr.Slice(int(m.to-s.lo), int(m.size))}
			wr.Remote = iwarp.RemoteBuffer{STag: m.src, TO: m.srcTO, Len: m.size}
		case len(m.data) == 0 && m.op == opWrite && i == 0:
			continue // the RTR, which the QP sends by itself
		default:
			wr.Op = iwarp.OpSend
			if m.op == opWrite {
				wr.Op, wr.Remote = iwarp.OpRDMAWrite, iwarp.RemoteBuffer{STag: m.stag, TO: m.to, Len: uint32(len(m.data))}
			}
			buf, mr := r.register(len(m.data), 0, nil)
			copy(buf, m.data)
			wr.Local = []iwarp.SGE{mr.Slice(0, len(buf))}
		}
		require.NoError(r, r.qp.PostSend(wr))
	}
}

// play sends siw's segments: a Read Response when it was requested, and everything after a Read Request when that was
// answered.
func (r *replay) play() {
	answers := r.ours.of(opResponse)
	var asked, answered int
	opened := false // a Read Response of which some segments are out
	for _, u := range r.siw.ulpdus {
		u = bytes.Clone(u)
		op := u[1] & 0xf
		last := u[0]&0x40 != 0
		switch {
		case op == opRead:
			r.prepare(u, answers[answered].data)
		case op == opResponse && !opened:
			asked++
			r.await(func() bool { return r.count(opRead) >= asked }, "the QP asks for what siw answers")
		}
		if isTagged(u) {
			if s := r.mrs[stagAt(u, 2)]; s != nil && len(u) > 14 {
				copy(s.at(s.want, binary.BigEndian.Uint64(u[6:]), len(u)-14), u[14:])
				putSTag(u, 2, s.mr.STag())
			}
			opened = op == opResponse && !last || op != opResponse && opened
		}
		r.write(u)
		if op == opRead {
			answered++
			r.await(func() bool { return r.count(opResponse) >= answered }, "siw's Read is answered")
		}
	}
}

// prepare stores the data that siw is about to read, and replaces the STag by ours.
func (r *replay) prepare(u, data []byte) {
	s := r.mrs[stagAt(u, 34)]
	if s == nil {
		return // no octets are read
	}
	to := binary.BigEndian.Uint64(u[38:])
	copy(s.at(s.mem, to, len(data)), data)
	copy(s.at(s.want, to, len(data)), data)
	putSTag(u, 34, s.mr.STag())
}

func (r *replay) write(ulpdu []byte) {
	b := wiretest.FPDU(ulpdu)
	if !r.crc {
		clear(b[len(b)-4:])
	}
	_, err := r.conn.Write(b)
	require.NoError(r, err)
}

// count returns how many messages with this opcode we have sent.
func (r *replay) count(op byte) (n int) {
	for _, u := range r.sent {
		if u[1]&0xf == op && u[0]&0x40 != 0 {
			n++
		}
	}
	return n
}

func (r *replay) await(done func() bool, expectation string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wiretest.Patience)
	defer cancel()
	for {
		r.mu.Lock()
		ok := done()
		r.mu.Unlock()
		if ok {
			return
		}
		require.NoError(r, ctx.Err(), "%s; the QP: %v", expectation, r.qp.Err())
		time.Sleep(time.Millisecond)
	}
}

// listen parses our FPDUs.
func (r *replay) listen() {
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(r.conn, head); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(head))
		rest := make([]byte, n+-(2+n)&3+4)
		_, err := io.ReadFull(r.conn, rest)
		r.mu.Lock()
		r.sent = append(r.sent, rest[:n])
		if err == nil && r.crc && crc32.Checksum(append(head, rest[:len(rest)-4]...), crc32.MakeTable(crc32.Castagnoli)) !=
			binary.LittleEndian.Uint32(rest[len(rest)-4:]) {
			err = transport.Faultf(transport.MPACRC, "segment %d", len(r.sent))
		}
		if err != nil && r.err == nil {
			r.err = err
		}
		r.mu.Unlock()
	}
}

// compare compares what we sent with what the other end sent then. Answers and requests may alternate in another order.
func (r *replay) compare() {
	for _, answers := range []bool{false, true} {
		var want, got [][]byte
		for _, u := range r.ours.ulpdus {
			if (u[1]&0xf == opResponse) == answers {
				want = append(want, r.renamed(u))
			}
		}
		for _, u := range r.sent {
			if (u[1]&0xf == opResponse) == answers {
				got = append(got, u)
			}
		}
		require.Equal(r, want, got, "we send what siw sent; the answers to Reads: %t", answers)
	}
}

// renamed restores the other end's STags in place of ours: in Read Requests, and in empty Writes, where they have no
// meaning.
func (r *replay) renamed(u []byte) []byte {
	at, st := 0, stag.STag(0)
	switch op := u[1] & 0xf; {
	case op == opRead && r.mrs[stagAt(u, 18)] != nil:
		at, st = 18, r.mrs[stagAt(u, 18)].mr.STag()
	case op == opWrite && len(u) == 14:
		at = 2
	default:
		return u
	}
	u = bytes.Clone(u)
	putSTag(u, at, st)
	return u
}
