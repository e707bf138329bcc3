package mpa

import (
	"errors"
	"net"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// A script is a Stream whose reads are written down beforehand. It never parks.
type script struct {
	reads   [][]byte // one element a Read, more if it is too long; nil: ErrAgain once
	end     error    // then; nil: ErrAgain
	take    int      // octets that one Write takes; 0: all
	full    bool     // writes take nothing more
	wrong   error    // of every Write
	emss    int
	copies  bool // it cannot tell without waiting
	secure  bool
	writes  [][]byte // one element a Write
	closed  int
	aborted int
	ended   bool // CloseWrite
	woken   int
	armed   func()
	longest int    // the most octets that a Read asked for
	before  func() // runs at the beginning of each Read and Arm; nil: nothing does
}

func (s *script) Read(p []byte, _ transport.Wait) (int, error) {
	s.begins()
	s.longest = max(s.longest, len(p))
	if s.closed > 0 || s.aborted > 0 {
		return 0, net.ErrClosed
	}
	if len(s.reads) == 0 {
		if s.end == nil {
			return 0, transport.ErrAgain
		}
		return 0, s.end
	}
	if s.reads[0] == nil {
		s.reads = s.reads[1:]
		return 0, transport.ErrAgain
	}
	n := copy(p, s.reads[0])
	if s.reads[0] = s.reads[0][n:]; len(s.reads[0]) == 0 {
		s.reads = s.reads[1:]
	}
	return n, nil
}

func (s *script) begins() {
	if s.before != nil {
		s.before()
	}
}

func (s *script) Write(bufs [][]byte, wait bool) (int, error) {
	if s.wrong != nil {
		return 0, s.wrong
	}
	if s.full && !wait {
		return 0, transport.ErrAgain
	}
	var all []byte
	for _, b := range bufs {
		all = append(all, b...)
	}
	if s.take > 0 && s.take < len(all) && !wait {
		s.writes = append(s.writes, all[:s.take])
		return s.take, transport.ErrAgain
	}
	s.writes = append(s.writes, all)
	return len(all), nil
}

// wire is everything written.
func (s *script) wire() (b []byte) {
	for _, w := range s.writes {
		b = append(b, w...)
	}
	return b
}

func (s *script) Gather() int {
	if s.copies {
		return 0
	}
	return 1024
}

func (s *script) EMSS() int                   { return s.emss }
func (s *script) SetDeadline(time.Time) error { return nil }
func (s *script) Arm(ready func()) bool       { s.begins(); s.armed = ready; return true }
func (s *script) Disarm()                     { s.armed = nil }
func (s *script) Wake()                       { s.woken++ }
func (s *script) CloseWrite() error           { s.ended = true; return nil }
func (s *script) Close() error                { s.closed++; return nil }
func (s *script) Abort() error                { s.aborted++; return nil }
func (s *script) Secure() bool                { return s.secure }
func (s *script) Path() string                { return "script" }
func (s *script) LocalAddr() net.Addr         { return &net.TCPAddr{Port: 1} }
func (s *script) RemoteAddr() net.Addr        { return &net.TCPAddr{Port: 2} }

// pieces cuts b into reads of n octets.
func pieces(b []byte, n int) (reads [][]byte) {
	for len(b) > n {
		reads, b = append(reads, b[:n]), b[n:]
	}
	return append(reads, b)
}

// A collector is a Placer that keeps what it is given.
type collector struct {
	transport.NoPrediction
	ulpdus [][]byte
	seqs   []uint64
	refuse func(seq uint64) error // nil: never
	stop   func() bool            // what Enough answers; nil: false
}

func (c *collector) Segment(seq uint64, ulpdu []byte) error {
	if c.refuse != nil {
		if err := c.refuse(seq); err != nil {
			return err
		}
	}
	c.seqs = append(c.seqs, seq)
	c.ulpdus = append(c.ulpdus, append([]byte(nil), ulpdu...))
	return nil
}

func (c *collector) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(c, seq, batch)
}

func (c *collector) Enough() bool { return c.stop != nil && c.stop() }

// drain receives without waiting until there is nothing more.
func drain(c *Conn, p transport.Placer) error {
	for {
		if err := c.Receive(p, transport.NoWait); err != nil {
			return err
		}
	}
}

// conn is a Conn in Full Operation over s.
func conn(s *script, t Terms) *Conn {
	return newConn(s, Options{}, &t)
}

var errTest = errors.New("for the test")

var _ transport.Stream = (*script)(nil)
