package sctpudp

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

var octets = octettest.Hex

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
				for { // the INIT comes again if the answer is late
					n, err := peer.Read(b)
					if err != nil {
						return
					}
					if valid(b[:n]) && b[headerSize] == chunkAbort {
						aborted <- tagOf(b)
						return
					}
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
	require.Equal(t, initiation{tag: 0x11223344, window: 0x1a000, outbound: 10, inbound: 0xffff, tsn: 0x55667788, adaptation: 1, reports: octets("0008 0008 c000 0004")}, i)
	for n := range b {
		_, _ = parseInit(b[:n])
	}
	ours := newInitiation()
	require.Equal(t, 10, streams(&ours, &i))
}

func TestSCTP_36_37_StreamsAreAsManyEachWay(t *testing.T) {
	ours := newInitiation()
	require.Equal(t, ours.outbound, ours.inbound)
	require.EqualValues(t, maxStreams, ours.outbound, "all that there will ever be")
	require.Equal(t, 3, streams(&ours, &initiation{outbound: 3, inbound: 5}))
	require.Equal(t, 4, streams(&ours, &initiation{outbound: 7, inbound: 4}))
}

func TestSCTP_5_22_DataOnAStreamThatIsNotThere(t *testing.T) {
	p := newPair(t)
	var client *association
	for _, client = range p.c.pool.Associations() {
	}
	s := &stream{a: client, id: maxStreams}
	require.NoError(t, s.attach())
	_, err := s.pion.Write([]byte("anything"))
	require.NoError(t, err)
	err = placertest.Receive(p.server, &placertest.Collector{Want: 1})
	require.ErrorIs(t, err, errStream)
	require.ErrorIs(t, placertest.Receive(p.client, &placertest.Collector{Want: 1}), syscall.ECONNRESET)
}

// TestSCTP_6_43_MessagesOnTheWire: unordered, unfragmented, and with their PPID.
func TestSCTP_6_43_MessagesOnTheWire(t *testing.T) {
	seen := make(chan chunk, 64)
	listen := func(ctx context.Context, network, address string) (net.PacketConn, error) {
		c, err := new(net.ListenConfig).ListenPacket(ctx, network, address)
		return &spyConn{PacketConn: c, seen: seen}, err
	}
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 1)
	require.NoError(t, err)
	defer l.End()
	c := NewClient(Config{ListenPacket: listen})
	defer c.Close()
	p := &pair{TB: t, l: l, c: c}
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

// A spyConn sees the DATA chunks that are sent, each once: one is sent again if its acknowledgement comes late.
type spyConn struct {
	net.PacketConn
	seen chan chunk
	tsns sync.Map
}

func (c *spyConn) WriteTo(p []byte, to net.Addr) (int, error) {
	for k, rest := chunk(nil), p[headerSize:]; len(rest) > 0; {
		if k, rest = split(rest); k.kind() != chunkData {
			continue
		}
		if _, again := c.tsns.LoadOrStore(binary.BigEndian.Uint32(k[4:]), true); !again {
			c.seen <- append(chunk(nil), k...)
		}
	}
	return c.PacketConn.WriteTo(p, to)
}

// TestSCTP_9_31_53_StreamsAreUsedAgain: on the same association, when all is acknowledged.
func TestSCTP_9_31_53_StreamsAreUsedAgain(t *testing.T) {
	p := newPair(t)
	first := p.association()
	for range 3 * maxStreams / 100 {
		client, server := p.session(t.Context())
		require.NoError(t, client.Close())
		require.ErrorContains(t, placertest.Receive(server, &placertest.Collector{Want: 1}), "EOF")
		require.NoError(t, server.Close())
		require.Eventually(t, func() bool {
			for _, a := range p.c.pool.Associations() {
				a.mu.Lock()
				n := len(a.streams)
				a.mu.Unlock()
				return n == 1
			}
			return false
		}, 5*time.Second, time.Millisecond)
	}
	require.Same(t, first, p.association())
	for _, a := range p.c.pool.Associations() {
		require.LessOrEqual(t, a.next, 2)
	}
	p.works()
}

// TestSessionThatBeginsWhenTheLastOneEnds: the Client hears late that there was none, and does not
// end the association under the new one.
func TestSessionThatBeginsWhenTheLastOneEnds(t *testing.T) {
	p := newPair(t)
	a := p.ours()
	p.c.idled(a)
	s, ok := a.Open()
	require.True(t, ok)
	s.Release(true)
	p.works()
}

// TestSCTP_50_51_PeerThatVanishes: its sessions end without a word of RDMAP.
func TestSCTP_50_51_PeerThatVanishes(t *testing.T) {
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 1)
	require.NoError(t, err)
	c := NewClient(Config{PeerTimeout: 2 * time.Second})
	defer c.Close()
	p := &pair{TB: t, l: l, c: c}
	client, _ := p.session(t.Context())
	start := time.Now()
	require.NoError(t, l.e.pc.Close()) // the peer answers no more
	err = placertest.Receive(client, &placertest.Collector{Want: 1})
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	var fault *transport.Fault
	require.False(t, errors.As(err, &fault))
	require.Less(t, time.Since(start), 10*time.Second)
	l.End()
}

func TestNoListener(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	c := NewClient(Config{})
	defer c.Close()
	_, err := c.Open(ctx, "127.0.0.1:9")
	require.True(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ECONNREFUSED), "%v", err)
}

// TestDialToAnotherPortOfSCTP at the UDP port of a listener is refused, as by a kernel (RFC 9260 section 8.4).
func TestDialToAnotherPortOfSCTP(t *testing.T) {
	p := newPair(t)
	udp := p.l.e.addr.UDP.String()
	start := time.Now()
	_, err := p.c.Open(t.Context(), fmt.Sprintf("%s/%d", udp, p.l.e.addr.Port^1))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Less(t, time.Since(start), 5*time.Second)
	p.works()
}

func TestAddresses(t *testing.T) {
	a, err := resolve(t.Context(), "127.0.0.1:9899/4420")
	require.NoError(t, err)
	require.Equal(t, Addr{UDP: netip.MustParseAddrPort("127.0.0.1:9899"), Port: 4420}, a)
	require.Equal(t, "127.0.0.1:9899/4420", a.String())
	a, err = resolve(t.Context(), "[fe80::1%zone]:7")
	require.NoError(t, err)
	require.Equal(t, "[fe80::1%zone]:7", a.String())
	a, err = resolve(t.Context(), "[::1]:7")
	require.NoError(t, err)
	require.Equal(t, "[::1]:7", a.String())
	for _, bad := range []string{"", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:1/0", "127.0.0.1:1/65536", "127.0.0.1:1/x"} {
		_, err := resolve(t.Context(), bad)
		require.Error(t, err, bad)
	}
}

// TestSCTP_34_35_OneAddressAtEachEnd: the address that leads to the peer.
func TestSCTP_34_35_OneAddressAtEachEnd(t *testing.T) {
	p := newPair(t)
	local := p.client.LocalAddr().(Addr)
	require.Equal(t, "127.0.0.1", local.UDP.Addr().String())
	require.Equal(t, p.server.RemoteAddr(), p.client.LocalAddr())
	require.Equal(t, p.server.LocalAddr(), p.client.RemoteAddr())
}

// TestSCTP_40_41_MessagesFitAPacket: of the path, with room for an acknowledgement.
func TestSCTP_40_41_MessagesFitAPacket(t *testing.T) {
	for _, c := range []struct{ packet, message int }{{1472, 1428}, {1232, 1188}, {8192, 8148}} {
		s := &stream{a: &association{packetSize: c.packet}}
		require.Equal(t, c.message, s.MaxMessage())
		require.LessOrEqual(t, headerSize+sackSize+dataHeaderSize+s.MaxMessage(), c.packet)
		require.GreaterOrEqual(t, s.MaxMessage(), sctp.MinMessage)
	}
	require.Equal(t, maxPacket, packetSize(netip.MustParseAddr("127.0.0.1")), "loopback takes more than pion")
}
