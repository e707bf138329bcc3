package iwarp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// reordering, if not 0, has pairs and scripted peers meet over a lower layer that hands
// segments up out of order, instead of MPA. It is the seed of that order.
var reordering uint64

// recordPipe has what is sent together arrive together, in any order within a window.
func recordPipe(t testing.TB) (a, b transport.LLP) {
	if kernelSessions {
		return kernelPair(t)
	}
	if datagrams != nil {
		return sessionPair(t, datagrams())
	}
	return transport.RecordPipe(transport.RecordOptions{Seed: reordering, Window: 16})
}

// connectOverRecords is connect without MPA. What MPA would negotiate is agreed all the
// same.
func (s *side) connectOverRecords(server *side, pc pairConfig) {
	s.Helper()
	for _, qc := range []*QPConfig{&pc.client, &pc.server} {
		if qc.IRD == 0 {
			qc.IRD = defaultReads
		}
		if qc.ORD == 0 {
			qc.ORD = defaultReads
		}
	}
	ours := enhanced.Limits{IRD: pc.client.IRD, ORD: pc.client.ORD, RTR: transport.RTRWrite}
	reply, theirs := enhanced.Respond(enhanced.Request(ours), enhanced.Limits{IRD: pc.server.IRD, ORD: pc.server.ORD, RTR: transport.RTRWrite})
	agreed, fault := enhanced.Conclude(ours, reply)
	require.Nil(s, fault)
	a, b := recordPipe(s)
	pc.client.PD, pc.server.PD = s.pd, server.pd
	s.qp = established(s, s.rnic, a, &pc.client, agreed)
	server.qp = established(s, server.rnic, b, &pc.server, theirs)
}

// established makes a QP of an LLP that needs no set-up.
func established(t testing.TB, r *RNIC, llp transport.LLP, qc *QPConfig, agreed enhanced.Agreed) *QP {
	t.Helper()
	qp, err := r.NewQP(qc)
	require.NoError(t, err)
	require.NoError(t, qp.local(nil).Prepare(t.Context()))
	terms := &mpa.Terms{IRD: max(agreed.IRD, 0), ORD: max(agreed.ORD, 0), PeerIRD: -1, PeerORD: -1}
	require.NoError(t, qp.establish(t.Context(), llp, terms, 0))
	return qp
}

// overRecords makes a QP whose peer is scripted. The peer still speaks in FPDUs.
func overRecords(t testing.TB, r *RNIC, qc *QPConfig) (*peer, *QP) {
	t.Helper()
	a, b := recordPipe(t)
	cfg, err := qc.withDefaults(r)
	require.NoError(t, err)
	qp := established(t, r, a, qc, enhanced.Agreed{IRD: cfg.IRD, ORD: cfg.ORD})
	x, y := transport.Pipe(transport.PipeOptions{})
	g := &gateway{llp: b, conn: y, early: make(map[uint64][]byte)}
	g.running.Go(g.toQP)
	g.running.Go(g.toPeer)
	t.Cleanup(func() {
		_ = x.Close()
		b.Abort(nil)
		g.running.Wait()
	})
	return &peer{TB: t, c: x}, qp
}

// A gateway stands between a QP over an LLP of records and a peer that speaks MPA,
// without set-up. To the peer it passes segments on in the order of the QP.
type gateway struct {
	transport.NoPrediction
	llp   transport.LLP
	conn  net.Conn
	next  uint64 // to be passed on to the peer
	early map[uint64][]byte

	running sync.WaitGroup
}

// toQP passes on what the peer sends, all that is there together. An FPDU that is cut
// short ends the connection.
func (g *gateway) toQP() {
	r := bufio.NewReaderSize(g.conn, 1<<16)
	for {
		ulpdu, err := readFPDU(r)
		if errors.Is(err, io.EOF) {
			_ = g.llp.CloseSend()
			return
		}
		full := err == nil && !g.llp.Append(ulpdu, nil, true)
		if err == nil && (full || r.Buffered() == 0) {
			err = g.llp.Flush(true)
		}
		if full {
			g.llp.Append(ulpdu, nil, true)
		}
		if err != nil {
			g.llp.Abort(err)
			return
		}
	}
}

// readFPDU returns the ULPDU of the next FPDU, and io.EOF only between two.
func readFPDU(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	b := make([]byte, n+(-(2+n)&3)+4)
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b[:n], err
}

// toPeer passes on what the QP sends, and its end.
func (g *gateway) toPeer() {
	var err error
	for err == nil {
		err = g.llp.Receive(g, transport.Park)
	}
	if errors.Is(err, io.EOF) {
		_ = g.conn.(interface{ CloseWrite() error }).CloseWrite()
		return
	}
	_ = g.conn.(interface{ Abort() error }).Abort()
	g.llp.Abort(err)
}

// Segment is what the gateway, as a transport.Placer, does with a segment of the QP.
func (g *gateway) Segment(seq uint64, ulpdu []byte) error {
	g.early[seq] = fpdu(ulpdu)
	for {
		b, ok := g.early[g.next]
		if !ok {
			return nil
		}
		delete(g.early, g.next)
		g.next++
		if _, err := g.conn.Write(b); err != nil {
			return err
		}
	}
}

func (g *gateway) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(g, seq, batch)
}
