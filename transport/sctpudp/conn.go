package sctpudp

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/logging"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// A conn is the packet connection that pion takes for DTLS. pion does not check ports and
// tags, knows few chunks, and drops a whole packet because of one chunk that it does not
// know. A conn makes up for all of that.
type conn struct {
	a      *association
	once   sync.Once
	closed chan struct{}
	up     chan struct{} // closed when the association knows its pion

	unacked atomic.Int32  // packets with DATA that pion has taken since its last SACK
	sacked  chan struct{} // has an element after a SACK
	late    *time.Timer   // of settle
}

// pionPort is the number that pion uses for both SCTP ports.
const pionPort = 5000

// Read returns the next packet that contains something for pion.
func (c *conn) Read(p []byte) (int, error) {
	select {
	case <-c.up:
	case <-c.a.done:
		return 0, net.ErrClosed
	}
	c.a.discard()
	c.settle()
	for c.a.Err() == nil { // nothing is taken after an ABORT
		select {
		case b := <-c.a.in:
			n := 0
			if b.n == 0 {
				n = c.a.nudged(p)
			} else {
				n = c.a.accept(p, b.octets())
				c.a.release(b)
			}
			if n > 0 {
				if kindsOf(p[:n]).has(chunkData) {
					c.unacked.Add(1)
				}
				return n, nil
			}
		case <-c.closed:
			return 0, net.ErrClosed
		case <-c.a.done:
			return 0, net.ErrClosed
		}
	}
	return 0, net.ErrClosed
}

// ackTime bounds how long settle waits: pion acknowledges nothing more on an association that is ending.
const ackTime = 10 * time.Millisecond

// settle waits until pion has acknowledged what it has taken, if that is due: for every second packet, and
// for every packet while a chunk is missing (RFC 9260 sections 6.2 and 6.7). pion acknowledges in a goroutine
// of its own, and without settle only once for a whole burst. A peer could then send only Max.Burst packets in a
// round trip, however far its congestion window is open. It would learn of a gap too seldom to send the chunk again
// before its timer expires, and the timer would expire if that one SACK is lost. If many packets wait, this end is
// too slow, and settle does not make it slower.
func (c *conn) settle() {
	select {
	case <-c.sacked: // a SACK for packets that no longer count
	default:
	}
	n := c.unacked.Load()
	if n == 0 || n == 1 && !c.a.misses() || len(c.a.in) > inboundQueue/2 {
		return
	}
	if c.late == nil {
		c.late = time.NewTimer(ackTime)
	} else {
		c.late.Reset(ackTime)
	}
	defer c.late.Stop()
	for c.unacked.Load() > 0 {
		select {
		case <-c.sacked:
		case <-c.late.C:
			return
		case <-c.closed:
			return
		case <-c.a.done:
			return
		}
	}
}

// noteSACK records that pion has acknowledged what it has taken.
func (c *conn) noteSACK() {
	c.unacked.Store(0)
	select {
	case c.sacked <- struct{}{}:
	default:
	}
}

// Write sends a packet of pion, which it may change.
func (c *conn) Write(p []byte) (int, error) {
	a := c.a
	again, sack := false, false
	var probe chunk // the last DATA chunk, if the peer has no room
	a.mu.Lock()
	for k, rest := chunk(nil), p[headerSize:]; len(rest) > 0; {
		switch k, rest = split(rest); k.kind() {
		case chunkHeartbeat:
			// An idle pion probes with a HEARTBEAT that lacks its parameter, for which Linux
			// aborts the association. The association sends its own: see look.
			a.mu.Unlock()
			return len(p), nil
		case chunkData:
			a.depart(k)
			if a.window < uint32(a.packetSize) {
				probe = k
			}
		case chunkSack:
			sack = true
			a.received = k.tsn()
			if a.room.full() { // pion counts only octets
				k.setWindow(0)
			}
			again = a.room.told(k.window())
		}
	}
	a.mu.Unlock()
	if again {
		a.nudge()
	}
	seal(p, a.ports(), a.peerTag)
	if probe != nil {
		a.keep(p, probe.tsn())
	}
	a.e.send(p, a.way)
	if sack {
		c.noteSACK()
	}
	return len(p), nil
}

// depart records a DATA chunk that is sent. The caller holds mu.
func (a *association) depart(k chunk) {
	s := a.streams[k.stream()]
	if a.flight.sent(k.tsn(), s, k.octets()) {
		a.waiting--
		if s != nil {
			s.queued--
		}
	}
	if k.ppid() == sctp.PPIDControl || a.waiting == 0 && len(a.flight.chunks) == 1 || a.stuck(s) {
		k[1] |= flagImmediate
	}
}

// stuck reports whether nothing can follow what has been sent, on s, before the peer
// acknowledges some of it. The caller holds mu.
func (a *association) stuck(s *stream) bool {
	out, room := uint32(a.flight.octets), a.pion.RWND()
	// pion subtracts from the room all that it will send in one go: if less is outstanding
	// than it has subtracted, more will follow.
	if a.waiting > 0 && room+out < a.window {
		return false
	}
	full := s != nil && !s.mayHave(sendOctets/2)
	return a.waiting > 0 || full || min(room, a.pion.CWND()-min(out, a.pion.CWND())) < uint32(a.packetSize)
}

// Close is called by pion, with its locks held, when the association has ended for pion.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		go c.a.fail(errShutdown)
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.a.local }
func (c *conn) RemoteAddr() net.Addr { return Addr{UDP: c.a.peer.udp, Port: c.a.peer.port} }

// pion would use deadlines to end itself. It can end every wait here by Close.
func (c *conn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *conn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// noLog discards what pion would log. What matters is returned as an error.
type noLog struct{}

func (noLog) NewLogger(string) logging.LeveledLogger { return noLog{} }

func (noLog) Trace(string)          {}
func (noLog) Tracef(string, ...any) {}
func (noLog) Debug(string)          {}
func (noLog) Debugf(string, ...any) {}
func (noLog) Info(string)           {}
func (noLog) Infof(string, ...any)  {}
func (noLog) Warn(string)           {}
func (noLog) Warnf(string, ...any)  {}
func (noLog) Error(string)          {}
func (noLog) Errorf(string, ...any) {}
