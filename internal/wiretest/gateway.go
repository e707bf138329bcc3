package wiretest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp/transport"
)

// Over makes a Peer that is connected to a QP over an LLP; llp is the Peer's end. The Peer still
// sends and receives FPDUs.
func Over(t testing.TB, llp transport.LLP) *Peer {
	t.Helper()
	x, y := transport.Pipe(transport.PipeOptions{})
	g := &gateway{llp: llp, conn: y, early: make(map[uint64][]byte)}
	g.running.Go(g.toQP)
	g.running.Go(g.toPeer)
	t.Cleanup(func() {
		_ = x.Close()
		llp.Abort(nil)
		g.running.Wait()
	})
	return &Peer{TB: t, Conn: x}
}

// A gateway connects a QP over a record LLP with a peer that speaks MPA, without
// set-up. It passes segments to the peer in the order in which the QP sent them.
type gateway struct {
	transport.NoPrediction
	llp   transport.LLP
	conn  net.Conn
	next  uint64 // the next segment to pass to the peer
	early map[uint64][]byte

	running sync.WaitGroup
}

// toQP passes on what the peer sends, with all available segments together. A truncated
// FPDU ends the connection.
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

// toPeer passes on what the QP sends, and then the end of its stream.
func (g *gateway) toPeer() {
	var err error
	for err == nil || errors.Is(err, transport.ErrWoken) {
		err = g.llp.Receive(g, transport.Park)
	}
	if errors.Is(err, io.EOF) {
		_ = g.conn.(interface{ CloseWrite() error }).CloseWrite()
		return
	}
	_ = g.conn.(interface{ Abort() error }).Abort()
	g.llp.Abort(err)
}

// Segment implements transport.Placer for the segments of the QP.
func (g *gateway) Segment(seq uint64, ulpdu []byte) error {
	g.early[seq] = FPDU(ulpdu)
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
