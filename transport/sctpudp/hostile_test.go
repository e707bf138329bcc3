package sctpudp

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// A pair is a session over real sockets, with an attacker that forges packets of its ends.
type pair struct {
	testing.TB
	l              *Listener
	c              *Client
	client, server *sctp.Conn
	forger         *net.UDPConn
}

func newPair(t *testing.T) *pair {
	p := &pair{TB: t}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var err error
	p.l, err = Listen(ctx, Config{}, "127.0.0.1:0", 16)
	require.NoError(t, err)
	p.c = NewClient(Config{})
	p.client, p.server = p.session(ctx)
	require.Eventually(t, func() bool { return p.l.unasked.Load() == 0 }, 10*time.Second, time.Microsecond,
		"the turn of the session ends only after its request was read")
	p.forger, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.forger.Close()
		p.c.Close()
		p.l.End()
	})
	return p
}

func (p *pair) session(ctx context.Context) (client, server *sctp.Conn) {
	p.Helper()
	accepted := make(chan *sctp.Conn, 1)
	go func() {
		defer close(accepted)
		if r, err := p.l.Accept(); err == nil {
			if c, _, err := r.Accept(sctp.Options{}, 1, 1, nil); err == nil {
				accepted <- c
			}
		}
	}()
	s, err := p.c.Open(ctx, p.l.Addr().String())
	require.NoError(p, err)
	client, _, err = sctp.Connect(ctx, s, sctp.Options{}, 1, 1, nil)
	require.NoError(p, err)
	return client, <-accepted
}

// association is the listener's only one.
func (p *pair) association() *association {
	all := p.l.e.associations()
	require.Len(p, all, 1)
	return all[0]
}

// forge sends a packet to the listener.
func (p *pair) forge(b []byte) {
	_, err := p.forger.WriteToUDPAddrPort(b, p.l.e.addr.UDP)
	require.NoError(p, err)
}

// works moves a segment each way.
func (p *pair) works() {
	p.Helper()
	for _, d := range [][2]*sctp.Conn{{p.client, p.server}, {p.server, p.client}} {
		require.True(p, d[0].Append([]byte("segment"), nil, true))
		require.NoError(p, d[0].Flush(true))
		o := &placertest.Collector{Want: 1}
		require.NoError(p, placertest.Receive(d[1], o))
		require.Equal(p, []string{"segment"}, o.Got)
	}
}

// TestDDP_6_ForgedPacketsHaveNoEffect: their sender does not know the verification tag, or is
// not where the peer is.
func TestDDP_6_ForgedPacketsHaveNoEffect(t *testing.T) {
	p := newPair(t)
	a := p.association()
	at := ports{a.peer.port, p.l.e.addr.Port}
	data := binary.BigEndian.AppendUint32(nil, a.arrived.next)
	data = append(data, 0, 0, 0, 0, 0, 0, 0, 16, 0, 1, 0x66)
	for name, b := range map[string][]byte{
		"ABORT of another tag":                   packet(at, a.ourTag+1, chunkAbort, 0, nil),
		"ABORT with the peer's tag, unflagged":   packet(at, a.peerTag, chunkAbort, 0, nil),
		"ABORT from elsewhere":                   packet(at, a.ourTag, chunkAbort, 0, nil),
		"ABORT that reflects another tag":        packet(at, a.peerTag+1, chunkAbort, flagReflected, nil),
		"ABORT that reflects, from elsewhere":    packet(at, a.peerTag, chunkAbort, flagReflected, nil),
		"DATA of another tag":                    packet(at, a.ourTag+1, chunkData, 7, data),
		"DATA from elsewhere":                    packet(at, a.ourTag, chunkData, 7, data),
		"SHUTDOWN":                               packet(at, 0, chunkShutdown, 0, data[:4]),
		"SHUTDOWN COMPLETE from elsewhere":       packet(at, a.peerTag, chunkShutdownComplete, flagReflected, nil),
		"COOKIE ECHO of nothing":                 packet(at, a.ourTag, chunkCookieEcho, 0, make([]byte, cookieSize)),
		"an INIT behind which something follows": append(packet(at, 0, chunkInit, 0, nil), 0, 0, 0, 4),
		"half a header":                          {1, 2, 3},
		"nothing":                                {},
		"a wrong checksum":                       corrupted(packet(at, a.ourTag, chunkAbort, 0, nil)),
		"a checksum of zero":                     unchecked(packet(at, a.ourTag, chunkAbort, 0, nil)),
	} {
		t.Run(name, func(t *testing.T) {
			p.forge(b)
			p.works()
		})
	}
	// Those that come from the very address of the peer, without knowing the tag.
	for _, b := range [][]byte{
		packet(at, a.ourTag+1, chunkAbort, 0, nil),
		packet(at, a.peerTag, chunkAbort, 0, nil),
		packet(at, a.ourTag+1, chunkData, 7, data),
		unchecked(packet(at, a.ourTag, chunkAbort, 0, nil)),
		corrupted(packet(at, a.ourTag, chunkAbort, 0, nil)),
	} {
		for _, client := range p.c.pool.Associations() {
			client.e.send(b, destination{to: p.l.e.addr.UDP})
		}
		p.works()
	}
}

func corrupted(p []byte) []byte {
	p[len(p)-1] ^= 1
	return p
}

func unchecked(p []byte) []byte {
	copy(p[8:], []byte{0, 0, 0, 0})
	return p
}

// TestSpoofedInitsCostNothing: 10,000 of them, from peers that are not there, each answered and forgotten.
func TestSpoofedInitsCostNothing(t *testing.T) {
	p := newPair(t)
	p.works()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	answer := make([]byte, 1500)
	for i := range 10_000 {
		require.NoError(t, p.forger.SetReadDeadline(time.Now().Add(10*time.Second))) // for each
		init := initiation{tag: uint32(i + 1), window: 1 << 20, outbound: 10, inbound: 10}
		p.forge(packet(ports{uint16(i + 1), p.l.e.addr.Port}, 0, chunkInit, 0, init.append(nil)))
		n, err := p.forger.Read(answer)
		require.NoError(t, err)
		require.True(t, valid(answer[:n]))
		require.EqualValues(t, chunkInitAck, answer[headerSize])
		require.Equal(t, init.tag, tagOf(answer))
	}
	p.works()
	require.Equal(t, 1, p.l.e.count())
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))
}

// TestCookiesProveAnAddress: only the address that got a cookie can use it.
func TestCookiesProveAnAddress(t *testing.T) {
	s, now := newSecret(), time.Now()
	from, at := netip.MustParseAddrPort("[::1]:7"), ports{3, 4}
	k := &cookie{made: now, from: from, at: at, ours: newInitiation(), theirs: newInitiation()}
	b := s.bake(k)
	got, ok := s.open(b, from, at)
	require.True(t, ok)
	require.Equal(t, k.ours, got.ours)
	require.Equal(t, k.theirs, got.theirs)
	require.Zero(t, got.made.Sub(now))
	require.Contains(t, got.made.String(), " m=", "by the monotonic clock: the time of day may step")

	_, ok = s.open(b, netip.MustParseAddrPort("[::1]:8"), at)
	require.False(t, ok, "another address")
	_, ok = s.open(b, from, ports{3, 5})
	require.False(t, ok, "another port")
	require.False(t, got.stale(now.Add(cookieLife)))
	require.True(t, got.stale(now.Add(cookieLife+time.Second)), "too old")
	require.True(t, got.stale(now.Add(-time.Second)), "the clock was set back")
	other := newSecret()
	_, ok = other.open(b, from, at)
	require.False(t, ok, "of another listener")
	for i := range b {
		b[i] ^= 1
		_, ok = s.open(b, from, at)
		require.False(t, ok, "octet %d", i)
		b[i] ^= 1
	}
	_, ok = s.open(b[1:], from, at)
	require.False(t, ok)
}

// TestDataComesWithTheCookie: as Linux sends it.
func TestDataComesWithTheCookie(t *testing.T) {
	p := newPair(t)
	at := ports{9, p.l.e.addr.Port}
	init := newInitiation()
	p.forge(packet(at, 0, chunkInit, 0, init.append(nil)))
	answer := make([]byte, 1500)
	require.NoError(t, p.forger.SetReadDeadline(time.Now().Add(5*time.Second)))
	n, err := p.forger.Read(answer)
	require.NoError(t, err)
	c, _ := split(answer[headerSize:n])
	require.EqualValues(t, chunkInitAck, c.kind())
	theirs, err := parseInit(c[chunkHeaderSize:])
	require.NoError(t, err)

	data := binary.BigEndian.AppendUint32(nil, init.tsn)
	data = append(data, octets("0003 0000 00000011 0000 0001 6869")...)
	b := appendChunk(make([]byte, headerSize), chunkCookieEcho, 0, theirs.cookie)
	b = appendChunk(b, chunkData, 7, data)
	seal(b, at, theirs.tag)
	p.forge(b)
	r, err := p.l.Accept()
	require.NoError(t, err)
	require.Equal(t, "hi", string(r.PrivateData()))
	r.Close()
	n, err = p.forger.Read(answer)
	require.NoError(t, err)
	require.True(t, valid(answer[:n]))
	require.EqualValues(t, chunkCookieAck, answer[headerSize], "before anything else")
}

// TestSessionOnAnAssociationThatThePeerShutsDown is opened on another one.
func TestSessionOnAnAssociationThatThePeerShutsDown(t *testing.T) {
	p := newPair(t)
	ours := p.ours()
	theirs := p.association()
	theirs.mu.Lock()
	acked := theirs.received
	theirs.mu.Unlock()
	theirs.say(chunkShutdown, binary.BigEndian.AppendUint32(nil, acked)) // and no more of it
	require.Eventually(t, func() bool {
		_, err := ours.pion.OpenStream(0, sctp.PPIDSegment)
		return err != nil
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, ours.Err())
	s, err := p.c.Open(t.Context(), p.l.Addr().String())
	require.NoError(t, err)
	require.NotSame(t, ours, s.(*stream).a)
	s.Release(true)
}
