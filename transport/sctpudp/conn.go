package sctpudp

import (
	"net"
	"os"
	"sync"
	"time"

	"github.com/pion/logging"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// A conn is the packet connection that pion believes to be DTLS. pion does not look at
// ports and tags, knows few chunks, and drops a whole packet for one that it does not
// know: everything is put right here.
type conn struct {
	a      *association
	once   sync.Once
	closed chan struct{}
	up     chan struct{} // closed when the association knows its pion
}

// pionPort is what pion has for both SCTP ports.
const pionPort = 5000

// Read returns the next packet that has something for pion.
func (c *conn) Read(p []byte) (int, error) {
	select {
	case <-c.up:
	case <-c.a.done:
		return 0, net.ErrClosed
	}
	for {
		select {
		case b := <-c.a.in:
			n := c.a.accept(p, b.buf[:b.n])
			packets.Put(b.buf)
			if n > 0 {
				return n, nil
			}
		case <-c.closed:
			return 0, net.ErrClosed
		case <-c.a.done:
			return 0, net.ErrClosed
		}
	}
}

// accept copies the chunks of a packet that are pion's to dst, and sees to the others. It
// returns the length, 0 if none is.
func (a *association) accept(dst, p []byte) int {
	a.heard.Store(time.Now().UnixNano())
	out := dst[:headerSize]
	for c, rest := chunk(nil), p[headerSize:]; len(rest) > 0; {
		c, rest = split(rest)
		switch c.kind() {
		case chunkData:
			if int(c.stream()) >= a.pairs {
				a.fail(errStream)
				return 0
			}
			if !a.sight(c) {
				continue
			}
		case chunkSack, chunkShutdown:
			if len(c) < 8 {
				continue
			}
			a.acked(c.tsn())
		case chunkAbort:
			a.fail(errReset)
			return 0
		case chunkHeartbeat:
			a.say(chunkHeartbeatAck, 0, c[chunkHeaderSize:])
			continue
		case chunkCookieEcho: // the first, or our COOKIE ACK was lost
			a.say(chunkCookieAck, 0, nil)
			continue
		case chunkShutdownAck, chunkShutdownComplete:
		default:
			continue
		}
		out = append(out, c...)
		out = append(out, make([]byte, pad(len(c))-len(c))...)
	}
	if len(out) == headerSize {
		return 0
	}
	seal(out, ports{pionPort, pionPort}, a.ourTag)
	return len(out)
}

// acked takes the peer's word that it has everything up to tsn.
func (a *association) acked(tsn uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flight.acked(tsn, func(c flown) {
		if c.s != nil {
			c.s.acked(c.octets)
			a.reuse(c.s)
		}
	})
}

// Write sends a packet of pion's, which is ours to change.
func (c *conn) Write(p []byte) (int, error) {
	a := c.a
	a.mu.Lock()
	for k, rest := chunk(nil), p[headerSize:]; len(rest) > 0; {
		switch k, rest = split(rest); k.kind() {
		case chunkData:
			a.depart(k)
		case chunkSack:
			a.received = k.tsn()
		}
	}
	a.mu.Unlock()
	seal(p, a.ports(), a.peerTag)
	a.e.send(p, a.peer.udp)
	return len(p), nil
}

// depart notes a DATA chunk that is sent. The caller holds mu.
func (a *association) depart(k chunk) {
	s := a.streams[k.stream()]
	if a.flight.sent(k.tsn(), s, k.octets()) {
		a.waiting--
	}
	full := s != nil && a.waiting == 0 && !s.mayHave(sendOctets/2)
	if full || k.ppid() == sctp.PPIDControl {
		k[1] |= flagImmediate
	}
}

// Close is what pion calls, with its locks held, when the association has ended for it.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		go c.a.fail(errShutdown)
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.a.e.addr }
func (c *conn) RemoteAddr() net.Addr { return Addr{UDP: c.a.peer.udp, Port: c.a.peer.port} }

// Deadlines are what pion would use to end itself. Nothing here waits that it could not
// end by Close.
func (c *conn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *conn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// silence is a log that nobody reads. What matters comes back as an error.
type silence struct{}

func (silence) NewLogger(string) logging.LeveledLogger { return silence{} }

func (silence) Trace(string)          {}
func (silence) Tracef(string, ...any) {}
func (silence) Debug(string)          {}
func (silence) Debugf(string, ...any) {}
func (silence) Info(string)           {}
func (silence) Infof(string, ...any)  {}
func (silence) Warn(string)           {}
func (silence) Warnf(string, ...any)  {}
func (silence) Error(string)          {}
func (silence) Errorf(string, ...any) {}
