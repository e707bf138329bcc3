package drive

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/hostile/attack"
)

// An Outcome is the result of one conversation.
type Outcome struct {
	Refused   bool // no connection was established
	Ended     bool // the other side ended it before the attacker was done
	Sent, Got uint64
}

// dialTime bounds how long an attacker waits for its connection.
const dialTime = 5 * time.Second

// Play holds one conversation with the address. maxGap bounds its waits, if it is not 0. The error, if any, is that of ctx, which
// ended before a connection was established: whether the other side would have accepted one is unknown.
func Play(ctx context.Context, addr string, c attack.Conversation, maxGap time.Duration) (Outcome, error) {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, c.Layer.Network(), addr)
	if err != nil {
		return Outcome{Refused: true}, ctx.Err()
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	a := &attacker{Conn: conn, maxGap: maxGap, came: make(chan struct{}, 1), gone: make(chan struct{})}
	if c.Layer.Network() == "udp" {
		a.association = &association{}
	}
	if c.ReadsNothing && a.association == nil { // packets are always read, since they contain the tags
		a.readsNothing = true
		close(a.gone)
	} else {
		go a.listens()
	}
	for _, s := range c.Steps {
		if err := a.does(ctx, s); err != nil {
			a.ended = ctx.Err() == nil
			break
		}
	}
	select {
	case <-a.gone:
		a.ended = a.ended || !a.readsNothing && ctx.Err() == nil
	default:
	}
	_ = conn.Close()
	<-a.gone
	return Outcome{Ended: a.ended, Sent: a.sent, Got: a.got.Load()}, nil
}

// An attacker plays one conversation.
type attacker struct {
	net.Conn
	*association // over UDP
	maxGap       time.Duration
	readsNothing bool // it reads nothing

	sent  uint64
	ended bool
	got   atomic.Uint64
	came  chan struct{} // octets have arrived
	gone  chan struct{} // closed when no more will arrive
}

// listens reads and discards what arrives.
func (a *attacker) listens() {
	defer close(a.gone)
	buf := make([]byte, 16<<10)
	for {
		n, err := a.Read(buf)
		a.got.Add(uint64(n))
		if a.association != nil {
			a.heard(buf[:n])
		}
		if n > 0 {
			select {
			case a.came <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// does performs one step. It returns an error if the connection or ctx has ended.
func (a *attacker) does(ctx context.Context, s attack.Step) error {
	switch s.Act {
	case attack.Send:
		return a.sends(s.Data)
	case attack.Slow:
		for i := range min(len(s.Data), slowest) {
			if err := a.sends(s.Data[i : i+1]); err != nil {
				return err
			}
			a.waits(ctx, s.Wait, nil)
		}
	case attack.Stall:
		a.waits(ctx, s.Wait, nil)
	case attack.Await:
		a.waits(ctx, s.Wait, a.came)
	case attack.FIN:
		if c, ok := a.Conn.(*net.TCPConn); ok {
			return c.CloseWrite()
		}
	case attack.RST:
		if c, ok := a.Conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
		return a.Close()
	case attack.Chunks:
		return a.sends(a.packet(s.Data))
	case attack.Cookie:
		return a.sends(a.packet(a.cookieEcho(s.Data)))
	}
	return ctx.Err()
}

// slowest is the maximum number of octets that are sent slowly.
const slowest = 256

// sends writes octets. It is no error if the other side does not accept all of them in time.
func (a *attacker) sends(b []byte) error {
	_ = a.SetWriteDeadline(time.Now().Add(a.gap(writeTime)))
	n, err := a.Write(b)
	a.sent += uint64(n)
	if wait, ok := errors.AsType[net.Error](err); ok && wait.Timeout() {
		return nil
	}
	return err
}

// writeTime is how long an attacker waits for the other side to accept what it sends.
const writeTime = 2 * time.Second

func (a *attacker) gap(d time.Duration) time.Duration {
	if a.maxGap > 0 {
		return min(d, a.maxGap)
	}
	return d
}

// waits returns when the time is over, something has arrived, or the connection or ctx has ended.
func (a *attacker) waits(ctx context.Context, d time.Duration, came <-chan struct{}) {
	gone := a.gone
	if came == nil || a.readsNothing { // a stall lasts whatever the other side does
		gone = nil
	}
	t := time.NewTimer(a.gap(d))
	defer t.Stop()
	select {
	case <-t.C:
	case <-came:
	case <-gone:
	case <-ctx.Done():
	}
}
