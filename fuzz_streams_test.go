package iwarp_test

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/recordpipe"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// FuzzStreams lets two QPs work over a wire that bends what passes. Whatever comes, nothing hangs, no octet
// outside the regions that the peer may change does change, and every work request completes exactly once. If
// nothing was bent, all of it succeeds and all octets are where they belong. If the wire damages octets and cannot
// make the CRC right again, what succeeds has the right octets.
//
// The input is the mode (see modeOf), the number of operations of each side, an octet for each operation
// (see streamEnd.posts), and what the wire does (see wiretest.Benders).
func FuzzStreams(f *testing.F) {
	program := []byte{8, 8, 0x00, 0x11, 0x22, 0x33, 0x44, 0x05, 0x16, 0x27, 0x47, 0x42, 0x41, 0x40, 0x35, 0x34, 0x33, 0x22}
	for mode := range byte(streamModes) {
		f.Add(append([]byte{mode}, program...))
		for how := wiretest.Flip; how <= wiretest.Edge; how++ {
			for i := range 4 {
				in := append([]byte{mode}, program...)
				in = append(in, wiretest.Change(i%2 == 1, 3*i, how, uint16(7*i+int(how)), byte(i*37))...)
				f.Add(append(in, wiretest.Change(i%2 == 0, i, how, uint16(5*i+2), byte(i))...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < 3 || len(in) > 256 {
			return
		}
		synctest.Test(t, func(t *testing.T) { newStreams(t, in).run() })
	})
}

// A streamMode is what the wire is.
type streamMode struct {
	records  bool // that keep boundaries, instead of MPA over a stream of octets
	window   int  // in which records overtake one another
	noCRC    bool
	rightCRC bool // the CRC is right after all
	markers  bool
}

const streamModes = 6

// modeOf chooses the mode.
func modeOf(b byte) streamMode {
	return [streamModes]streamMode{
		{rightCRC: true},
		{},
		{noCRC: true},
		{markers: true},
		{records: true, rightCRC: true},
		{records: true, window: 8, rightCRC: true},
	}[b%streamModes]
}

// streams are two ends, and a wire.
type streams struct {
	*testing.T
	mode        streamMode
	ends        [2]*streamEnd
	there, back *wiretest.Bender
}

func newStreams(t *testing.T, in []byte) *streams {
	s := &streams{T: t, mode: modeOf(in[0])}
	program := in[3:]
	var ops [2][]byte
	for i := range ops {
		n := min(int(in[1+i]%(streamOps+1)), len(program))
		ops[i], program = program[:n], program[n:]
	}
	s.there, s.back = wiretest.Benders(program)
	for i := range s.ends {
		s.ends[i] = newStreamEnd(t, ops[i])
	}
	s.ends[0].peer, s.ends[1].peer = s.ends[1], s.ends[0]
	return s
}

// exact reports whether what succeeds is right: octets are damaged, but no FPDU is left out, which no CRC reveals.
func (s *streams) exact() bool {
	return !s.mode.records && !s.mode.noCRC && !s.mode.rightCRC && !s.there.Lost() && !s.back.Lost()
}

func (s *streams) bent() bool { return s.there.Bent() || s.back.Bent() }

// connects sets up the connection. It reports whether there is one; the wire may bend the RTR.
func (s *streams) connects() bool {
	qc := func(e *streamEnd) *iwarp.QPConfig {
		c := &iwarp.QPConfig{PD: e.pd, RNRWait: time.Second, Setup: e.prepares}
		c.MPA = iwarp.MPAOptions{NoCRC: s.mode.noCRC, Markers: s.mode.markers, MaxULPDU: 512, NoFallback: true}
		return c
	}
	client, server := s.ends[0], s.ends[1]
	if s.mode.records {
		a, b := recordpipe.New(recordpipe.Options{Window: s.mode.window, MaxULPDU: 512})
		client.qp, server.qp = iwarp.ConnectOver(s, &bentLLP{LLP: a, bender: s.there}, &bentLLP{LLP: b, bender: s.back},
			client.rnic, qc(client), server.rnic, qc(server))
		return true
	}
	a, b := transport.Pipe(transport.PipeOptions{})
	there, back := &bentConn{Conn: a, bender: s.there, mode: s.mode}, &bentConn{Conn: b, bender: s.back, mode: s.mode}
	accepted := make(chan error, 1)
	go func() {
		cr, err := server.rnic.Server(s.Context(), back, nil)
		if err == nil {
			server.qp, err = cr.Accept(s.Context(), qc(server))
		}
		accepted <- err
	}()
	var err error
	client.qp, err = client.rnic.Client(s.Context(), there, qc(client))
	if err != nil {
		_ = there.Abort()
	}
	return errors.Join(err, <-accepted) == nil
}

// run lets both ends work, and checks the outcome.
func (s *streams) run() {
	connected := s.connects()
	require.True(s, connected || s.bent(), "there is a connection")
	if connected {
		for _, e := range s.ends {
			e.posts()
		}
		time.Sleep(time.Second)
		synctest.Wait()
	}
	if !s.bent() {
		for _, e := range s.ends {
			require.Equal(s, iwarp.StateRTS, e.qp.State(), "%v", e.qp.Err())
		}
	}
	for _, e := range s.ends {
		if e.qp != nil {
			go e.qp.Close()
		}
	}
	for _, e := range s.ends {
		if e.qp == nil {
			continue
		}
		<-e.qp.Done()
		require.ErrorIs(s, e.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), net.ErrClosed)
		e.collects()
	}
	for _, e := range s.ends {
		e.wantGuards()
		if e.qp != nil && (!s.bent() || s.exact()) {
			e.wantRight()
		}
		if !s.bent() {
			e.wantAll()
		}
	}
}

// A bentLLP bends the segments that are sent.
type bentLLP struct {
	transport.LLP
	bender  *wiretest.Bender
	pending [][]byte
	again   bool // the caller appends the segment once more that did not fit
}

func (l *bentLLP) Append(head []byte, payload [][]byte, _ bool) bool {
	if !l.again {
		for _, msg := range l.bender.Bend(append(bytes.Clone(head), bytes.Join(payload, nil)...)) {
			if len(msg) > 0 { // there is no empty record
				l.pending = append(l.pending, msg)
			}
		}
	}
	l.again = false
	for ; len(l.pending) > 0; l.pending = l.pending[1:] {
		if !l.LLP.Append(l.pending[0], nil, true) {
			l.again = true
			return false
		}
	}
	return true
}

// A bentConn bends the FPDUs that are written; with Markers what is written at a time.
type bentConn struct {
	net.Conn
	bender *wiretest.Bender
	mode   streamMode
	begun  bool // the frame of the set-up has passed
	buf    []byte
}

func (c *bentConn) CloseWrite() error {
	for _, msg := range c.bender.Rest() {
		if _, err := c.Conn.Write(c.framed(msg)); err != nil {
			break
		}
	}
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

func (c *bentConn) Abort() error { return c.Conn.(interface{ Abort() error }).Abort() }

// framed is a message as it is sent: a segment gets another CRC.
func (c *bentConn) framed(msg []byte) []byte {
	if c.mode.rightCRC {
		return wiretest.FPDU(msg)
	}
	return msg
}

func (c *bentConn) Write(b []byte) (int, error) {
	c.buf = append(c.buf, b...)
	var out []byte
	if !c.begun {
		n := wiretest.FrameLen(c.buf)
		if n == 0 {
			return len(b), nil
		}
		out, c.buf, c.begun = c.buf[:n:n], c.buf[n:], true
	}
	for len(c.buf) > 0 {
		msg := c.next()
		if msg == nil {
			break
		}
		for _, bent := range c.bender.Bend(msg) {
			out = append(out, c.framed(bent)...)
		}
	}
	if len(out) > 0 {
		if _, err := c.Conn.Write(out); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// next takes the next unit that is bent: nil if it is not whole.
func (c *bentConn) next() (msg []byte) {
	n := len(c.buf)
	if !c.mode.markers {
		if n = wiretest.FPDULen(c.buf); n == 0 {
			return nil
		}
	}
	msg, c.buf = c.buf[:n], c.buf[n:]
	if c.mode.rightCRC {
		return wiretest.ULPDU(msg)
	}
	return msg
}
