package sctpudp

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
)

// A cable connects two sockets of a bubble. Each datagram takes a while, so that the ends count as
// distant. Those that are sent while it is cut are lost.
type cable struct {
	delay time.Duration
	cut   atomic.Bool

	mu   sync.Mutex
	ends map[netip.AddrPort]*cableEnd
	next uint16 // port
}

type cableEnd struct {
	c    *cable
	at   netip.AddrPort
	in   chan inDatagram
	done chan struct{}
	once sync.Once
}

type inDatagram struct {
	b    []byte
	from netip.AddrPort
}

func (c *cable) listen(_ context.Context, _, address string) (net.PacketConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	at := netip.AddrPortFrom(netip.MustParseAddrPort(address).Addr(), 20000+c.next)
	e := &cableEnd{c: c, at: at, in: make(chan inDatagram, 1024), done: make(chan struct{})}
	c.ends[at] = e
	return e, nil
}

func (e *cableEnd) ReadFrom(p []byte) (int, net.Addr, error) {
	select {
	case d := <-e.in:
		return copy(p, d.b), net.UDPAddrFromAddrPort(d.from), nil
	case <-e.done:
		return 0, nil, net.ErrClosed
	}
}

func (e *cableEnd) WriteTo(p []byte, addr net.Addr) (int, error) {
	if e.c.cut.Load() {
		return len(p), nil
	}
	d := inDatagram{append([]byte(nil), p...), e.at}
	time.AfterFunc(e.c.delay, func() {
		e.c.mu.Lock()
		to := e.c.ends[unmap(addr)]
		e.c.mu.Unlock()
		if to != nil {
			to.in <- d
		}
	})
	return len(p), nil
}

func (e *cableEnd) Close() error {
	e.once.Do(func() { close(e.done) })
	return nil
}

func (e *cableEnd) LocalAddr() net.Addr              { return net.UDPAddrFromAddrPort(e.at) }
func (e *cableEnd) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (e *cableEnd) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (e *cableEnd) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// distant runs a test with a session over a cable, in a bubble.
func distant(t *testing.T, test func(p *pair, c *cable)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cable{delay: 2 * nearby, ends: make(map[netip.AddrPort]*cableEnd)}
		cfg := Config{ListenPacket: c.listen}
		l, err := Listen(t.Context(), cfg, "127.0.0.1:0", 4)
		require.NoError(t, err)
		defer l.End()
		p := &pair{TB: t, l: l, c: NewClient(cfg)}
		defer p.c.Close()
		p.client, p.server = p.session(t.Context())
		test(p, c)
	})
}

// TestWhatIsLostWhenTheLastSessionEnds is sent again: the association ends gracefully when the peer
// has it, however long that takes.
func TestWhatIsLostWhenTheLastSessionEnds(t *testing.T) {
	distant(t, func(p *pair, c *cable) {
		require.NoError(t, p.server.CloseSend())
		require.ErrorIs(t, placertest.Receive(p.client, &placertest.Collector{Want: 1}), io.EOF)
		c.cut.Store(true)
		require.True(t, p.client.Append([]byte("last"), nil, true))
		require.NoError(t, p.client.Flush(true))
		require.NoError(t, p.client.Close())
		time.Sleep(2 * shutdownTime)
		c.cut.Store(false)

		o := &placertest.Collector{Want: 2}
		require.ErrorIs(t, placertest.Receive(p.server, o), io.EOF)
		require.Equal(t, []string{"last"}, o.Got)
		require.NoError(t, p.server.Close())
		require.Eventually(t, func() bool { return p.l.e.count() == 0 }, time.Second, time.Millisecond)
	})
}

// TestARCH_11_ReaderThatIsSlow has room again after a while without: the sender, whose timer has backed off
// meanwhile, goes on in time, at whatever moment that is.
func TestARCH_11_ReaderThatIsSlow(t *testing.T) {
	for idle := time.Minute; idle <= 2*time.Minute; idle += 10 * time.Second {
		messages, size := 2*receiveBuffer/8000, 8000
		if idle == 90*time.Second { // short ones use up their number before their octets
			messages, size = 2*maxUnread, 8
		}
		distant(t, func(p *pair, _ *cable) {
			sent := make(chan error, 1)
			go func() {
				var err error
				for n := 0; n < messages && err == nil; n++ {
					p.client.Append(make([]byte, size), nil, true)
					err = p.client.Flush(true)
				}
				sent <- err
			}()
			time.Sleep(idle)
			require.NoError(t, placertest.Receive(p.server, &placertest.Collector{Want: messages}), "after %v", idle)
			require.NoError(t, <-sent)
		})
	}
}

// TestSessionThatEndsLate, after an outage as long as an association survives, ends for both: the next
// one on its streams is not taken for it.
func TestSessionThatEndsLate(t *testing.T) {
	distant(t, func(p *pair, c *cable) {
		_, _ = p.session(p.Context()) // without one the client would end the association
		c.cut.Store(true)
		require.NoError(t, p.server.Close())
		time.Sleep(p.ours().e.cfg.PeerTimeout - 2*time.Second)
		c.cut.Store(false)
		require.ErrorIs(t, placertest.Receive(p.client, &placertest.Collector{Want: 1}), io.EOF)
		require.NoError(t, p.client.Close())
		time.Sleep(time.Second)

		ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
		defer cancel()
		p.client, p.server = p.session(ctx)
		p.works()
		p.eventually("the pair is used again", func(a *association) bool { return a.streams[0] != nil && a.next == 2 })
	})
}

// TestListenerWhoseLastSessionIsNotRead, for it has ended for the listener only, lets the peer begin
// another one on the association, and aborts nothing.
func TestListenerWhoseLastSessionIsNotRead(t *testing.T) {
	distant(t, func(p *pair, _ *cable) {
		require.NoError(t, p.client.CloseSend())
		require.ErrorIs(t, placertest.Receive(p.server, &placertest.Collector{Want: 1}), io.EOF)
		sent := 0
		for ; sent < 2*receiveBuffer/8000; sent++ {
			require.True(t, p.server.Append(make([]byte, 8000), nil, true))
			if err := p.server.Flush(false); err != nil {
				require.ErrorIs(t, err, transport.ErrAgain)
				break
			}
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, p.server.Close())
		old := p.client
		time.Sleep(3 * idleTime)
		read := make(chan error)
		o := &placertest.Collector{Want: sent + 1}
		go func() {
			time.Sleep(time.Second)
			read <- placertest.Receive(old, o)
		}()
		p.client, p.server = p.session(p.Context()) // once there is room for the Accept
		require.ErrorIs(t, <-read, io.EOF)
		require.Len(t, o.Got, sent)
		require.NoError(t, old.Close())
		p.works()
	})
}

// TestListenerWhoseLastSessionIsNotAcknowledged likewise: what it has sent is lost in an outage.
func TestListenerWhoseLastSessionIsNotAcknowledged(t *testing.T) {
	distant(t, func(p *pair, c *cable) {
		require.NoError(t, p.client.CloseSend())
		require.ErrorIs(t, placertest.Receive(p.server, &placertest.Collector{Want: 1}), io.EOF)
		c.cut.Store(true)
		require.NoError(t, p.server.Close())
		time.Sleep(p.ours().e.cfg.PeerTimeout - time.Second)
		c.cut.Store(false)
		old := p.client
		p.client, p.server = p.session(p.Context())
		require.ErrorIs(t, placertest.Receive(old, &placertest.Collector{Want: 1}), io.EOF)
		require.NoError(t, old.Close())
		p.works()
	})
}
