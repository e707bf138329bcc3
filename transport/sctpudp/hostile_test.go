package sctpudp

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// A pair is a session over real sockets, and who forges packets of its ends.
type pair struct {
	*testing.T
	l              *Listener
	c              *Client
	client, server *sctp.Conn
	forger         *net.UDPConn
}

func newPair(t *testing.T) *pair {
	p := &pair{T: t}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var err error
	p.l, err = Listen(ctx, Config{}, "127.0.0.1:0", 16)
	require.NoError(t, err)
	p.c = NewClient(Config{})
	p.client, p.server = p.session(ctx)
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

// one takes a number of segments.
type one struct {
	want int
	got  []string
}

func (o *one) Segment(_ uint64, ulpdu []byte) error {
	o.got = append(o.got, string(ulpdu))
	return nil
}

func (o *one) Stop() bool { return len(o.got) >= o.want }

// works moves a segment each way.
func (p *pair) works() {
	p.Helper()
	for _, d := range [][2]*sctp.Conn{{p.client, p.server}, {p.server, p.client}} {
		require.True(p, d[0].Append([]byte("segment"), nil, true))
		require.NoError(p, d[0].Flush(true))
		o := &one{want: 1}
		require.NoError(p, d[1].Receive(o, true))
		require.Equal(p, []string{"segment"}, o.got)
	}
}

// TestForgedPacketsHaveNoEffect: their sender does not know the verification tag, or is
// not where the peer is.
func TestForgedPacketsHaveNoEffect(t *testing.T) {
	p := newPair(t)
	a := p.association()
	at := ports{a.peer.port, p.l.e.addr.Port}
	data := binary.BigEndian.AppendUint32(nil, a.received+1)
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
		for client := range p.c.all {
			client.e.send(b, p.l.e.addr.UDP)
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

// TestSpoofedInitsCostNothing: 10,000 of them, from peers that are not there.
func TestSpoofedInitsCostNothing(t *testing.T) {
	p := newPair(t)
	p.works()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 10_000 {
		init := initiation{tag: uint32(i + 1), window: 1 << 20, outbound: 10, inbound: 10}
		p.forge(packet(ports{uint16(i + 1), p.l.e.addr.Port}, 0, chunkInit, 0, init.append(nil)))
	}
	p.works()
	require.Equal(t, 1, p.l.e.count())
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))
}

// TestCookiesProveAnAddress: none but the one who got it can use it, for a minute.
func TestCookiesProveAnAddress(t *testing.T) {
	s, now := newSecret(), time.Now()
	from, at := netip.MustParseAddrPort("[::1]:7"), ports{3, 4}
	k := &cookie{made: now, from: from, at: at, ours: newInitiation(), theirs: newInitiation()}
	b := s.bake(k)
	got, ok := s.open(b, from, at, now.Add(cookieLife))
	require.True(t, ok)
	require.Equal(t, k.ours, got.ours)
	require.Equal(t, k.theirs, got.theirs)

	_, ok = s.open(b, netip.MustParseAddrPort("[::1]:8"), at, now)
	require.False(t, ok, "another address")
	_, ok = s.open(b, from, ports{3, 5}, now)
	require.False(t, ok, "another port")
	_, ok = s.open(b, from, at, now.Add(cookieLife+time.Second))
	require.False(t, ok, "too old")
	other := newSecret()
	_, ok = other.open(b, from, at, now)
	require.False(t, ok, "of another listener")
	for i := range b {
		b[i] ^= 1
		_, ok = s.open(b, from, at, now)
		require.False(t, ok, "octet %d", i)
		b[i] ^= 1
	}
	_, ok = s.open(b[1:], from, at, now)
	require.False(t, ok)
}

// TestSCTP_1_2_3_4_33_IndicationIsEnforced: by the listener on INIT, by the client on
// INIT ACK.
func TestSCTP_1_2_3_4_33_IndicationIsEnforced(t *testing.T) {
	ours := newInitiation()
	require.Contains(t, hex.EncodeToString(ours.append(nil)), "c006000800000001")

	for name, param := range map[string]string{"none": "", "another": "c006000800000002"} {
		t.Run("INIT with "+name, func(t *testing.T) {
			p := newPair(t)
			init := newInitiation()
			b := append(init.appendFixed(nil), octets(param)...)
			p.forge(packet(ports{9, p.l.e.addr.Port}, 0, chunkInit, 0, b))
			answer := make([]byte, 1500)
			require.NoError(t, p.forger.SetReadDeadline(time.Now().Add(5*time.Second)))
			n, err := p.forger.Read(answer)
			require.NoError(t, err)
			require.True(t, valid(answer[:n]))
			require.Equal(t, init.tag, tagOf(answer))
			require.EqualValues(t, chunkAbort, answer[headerSize])
		})
		t.Run("INIT ACK with "+name, func(t *testing.T) {
			peer, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
			require.NoError(t, err)
			defer peer.Close()
			aborted := make(chan uint32, 1)
			theirs := newInitiation()
			go func() {
				b := make([]byte, 1500)
				n, from, err := peer.ReadFromUDPAddrPort(b)
				if err != nil {
					return
				}
				c, _ := split(b[headerSize:n])
				init, _ := parseInit(c[chunkHeaderSize:])
				value := append(theirs.appendFixed(nil), octets(param+"0007000500000000")...)
				_, _ = peer.WriteToUDPAddrPort(packet(back(b), init.tag, chunkInitAck, 0, value), from)
				if n, err := peer.Read(b); err == nil && valid(b[:n]) && b[headerSize] == chunkAbort {
					aborted <- tagOf(b)
				}
			}()
			c := NewClient(Config{})
			defer c.Close()
			_, err = c.Open(t.Context(), peer.LocalAddr().String())
			require.ErrorIs(t, err, ErrNotDDP)
			require.Equal(t, theirs.tag, <-aborted)
		})
	}
}

// TestINITOfLinux: its parameters are none of which we know anything, but for the
// indication.
func TestINITOfLinux(t *testing.T) {
	b := octets("11223344 0001a000 000a ffff 55667788" +
		"000c 0006 0005 0000" + // supported address types
		"8000 0004" + // ECN
		"8008 000a c1 80 c0 81 82 0f 0000" + // supported extensions
		"c000 0004" + // FORWARD TSN
		"c006 0008 00000001")
	i, err := parseInit(b)
	require.NoError(t, err)
	require.Equal(t, initiation{tag: 0x11223344, window: 0x1a000, outbound: 10, inbound: 0xffff, tsn: 0x55667788, adaptation: 1}, i)
	for n := range b {
		_, _ = parseInit(b[:n])
	}
	ours := newInitiation()
	require.Equal(t, 10, streams(&ours, &i))
}

func TestSCTP_36_37_StreamsAreAsManyEachWay(t *testing.T) {
	ours := newInitiation()
	require.Equal(t, ours.outbound, ours.inbound)
	require.Equal(t, 3, streams(&ours, &initiation{outbound: 3, inbound: 5}))
	require.Equal(t, 4, streams(&ours, &initiation{outbound: 7, inbound: 4}))
}

func TestSCTP_5_22_DataOnAStreamThatIsNotThere(t *testing.T) {
	p := newPair(t)
	var client *association
	for client = range p.c.all {
	}
	s := &stream{a: client, id: maxStreams}
	require.NoError(t, s.attach())
	_, err := s.pion.Write([]byte("anything"))
	require.NoError(t, err)
	err = p.server.Receive(&one{want: 1}, true)
	require.ErrorIs(t, err, errStream)
	require.ErrorIs(t, p.client.Receive(&one{want: 1}, true), syscall.ECONNRESET)
}

// TestSCTP_43_MessagesOnTheWire: unordered, unfragmented, and with their PPID.
func TestSCTP_6_43_MessagesOnTheWire(t *testing.T) {
	seen := make(chan chunk, 64)
	listen := func(ctx context.Context, network, address string) (net.PacketConn, error) {
		c, err := new(net.ListenConfig).ListenPacket(ctx, network, address)
		return &spyConn{c, seen}, err
	}
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 1)
	require.NoError(t, err)
	defer l.End()
	c := NewClient(Config{ListenPacket: listen})
	defer c.Close()
	p := &pair{T: t, l: l, c: c}
	client, server := p.session(t.Context())
	p.client, p.server = client, server
	p.works()
	require.NoError(t, client.Close())
	for _, want := range []struct {
		ppid uint32
		data string
	}{{17, "0000 0005"}, {16, "0001 7365676d656e74"}, {17, "0002 0004"}} {
		k := <-seen
		require.EqualValues(t, 7, k[1]&7, "U, B and E")
		require.Equal(t, want.ppid, k.ppid())
		require.Equal(t, octets(want.data), []byte(k[dataHeaderSize:][:len(octets(want.data))]))
	}
}

// A spyConn sees the DATA chunks that are sent.
type spyConn struct {
	net.PacketConn
	seen chan chunk
}

func (c *spyConn) WriteTo(p []byte, to net.Addr) (int, error) {
	for k, rest := chunk(nil), p[headerSize:]; len(rest) > 0; {
		if k, rest = split(rest); k.kind() == chunkData {
			c.seen <- append(chunk(nil), k...)
		}
	}
	return c.PacketConn.WriteTo(p, to)
}

func octets(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// TestSCTP_31_53_StreamsAreUsedAgain: on the same association, when all is acknowledged.
func TestSCTP_9_31_53_StreamsAreUsedAgain(t *testing.T) {
	p := newPair(t)
	first := p.association()
	for range 3 * maxStreams / 100 {
		client, server := p.session(t.Context())
		require.NoError(t, client.Close())
		require.ErrorContains(t, server.Receive(&one{want: 1}, true), "EOF")
		require.NoError(t, server.Close())
		require.Eventually(t, func() bool {
			for a := range p.c.all {
				a.mu.Lock()
				n := len(a.streams)
				a.mu.Unlock()
				return n == 1
			}
			return false
		}, 5*time.Second, time.Millisecond)
	}
	require.Same(t, first, p.association())
	for a := range p.c.all {
		require.LessOrEqual(t, a.next, 2)
	}
	p.works()
}

func TestPeerThatVanishes(t *testing.T) {
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 1)
	require.NoError(t, err)
	c := NewClient(Config{PeerTimeout: 400 * time.Millisecond})
	defer c.Close()
	p := &pair{T: t, l: l, c: c}
	client, _ := p.session(t.Context())
	start := time.Now()
	require.NoError(t, l.e.pc.Close()) // nobody answers any more
	err = client.Receive(&one{want: 1}, true)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	require.Less(t, time.Since(start), 3*time.Second)
	l.End()
}

func TestNobodyListens(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	c := NewClient(Config{})
	defer c.Close()
	_, err := c.Open(ctx, "127.0.0.1:9")
	require.True(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ECONNREFUSED), "%v", err)
}

func TestAddresses(t *testing.T) {
	a, err := resolve(t.Context(), "127.0.0.1:9899/4420")
	require.NoError(t, err)
	require.Equal(t, Addr{UDP: netip.MustParseAddrPort("127.0.0.1:9899"), Port: 4420}, a)
	require.Equal(t, "127.0.0.1:9899/4420", a.String())
	a, err = resolve(t.Context(), "[::1]:7")
	require.NoError(t, err)
	require.Equal(t, "[::1]:7", a.String())
	for _, bad := range []string{"", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:1/0", "127.0.0.1:1/65536", "127.0.0.1:1/x"} {
		_, err := resolve(t.Context(), bad)
		require.Error(t, err, bad)
	}
}
