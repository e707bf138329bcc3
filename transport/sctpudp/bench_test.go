package sctpudp

import (
	"net"
	"net/netip"
	"testing"

	pion "github.com/pion/sctp"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// benchmarkSize is that of the messages of both benchmarks.
const benchmarkSize = 8100

// BenchmarkSession sends segments over a session, in one process.
func BenchmarkSession(b *testing.B) {
	l, err := Listen(b.Context(), Config{}, "127.0.0.1:0", 1)
	require.NoError(b, err)
	defer l.End()
	c := NewClient(Config{})
	defer c.Close()
	received := make(chan error, 1)
	go func() {
		r, err := l.Accept()
		if err == nil {
			var s *sctp.Conn
			if s, _, err = r.Accept(sctp.Options{}, 1, 1, nil); err == nil {
				err = s.Receive(&counter{left: b.N}, true)
			}
		}
		received <- err
	}()
	s, err := c.Open(b.Context(), l.Addr().String())
	require.NoError(b, err)
	conn, _, err := sctp.Connect(b.Context(), s, sctp.Options{}, 1, 1, nil)
	require.NoError(b, err)
	segment := make([]byte, benchmarkSize)
	b.SetBytes(benchmarkSize)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for !conn.Append(segment, nil, true) {
			require.NoError(b, conn.Flush(true))
		}
	}
	require.NoError(b, conn.Flush(true))
	require.NoError(b, <-received)
}

type counter struct{ left int }

func (c *counter) Segment(uint64, []byte) error {
	c.left--
	return nil
}

func (c *counter) Stop() bool { return c.left <= 0 }

// BenchmarkPion is the same over pion itself, between two connected UDP sockets.
func BenchmarkPion(b *testing.B) {
	x, y := udpPair(b)
	made := make(chan *pion.Association, 1)
	options := func(c net.Conn) []pion.AssociationOption {
		return []pion.AssociationOption{
			pion.WithNetConn(c), pion.WithMTU(maxPacket), pion.WithMaxReceiveBufferSize(receiveBuffer),
			pion.WithEnableInterleaving(false), pion.WithLoggerFactory(silence{}),
		}
	}
	go func() {
		var o []pion.ServerOption
		for _, x := range options(y) {
			o = append(o, x)
		}
		a, _ := pion.ServerWithOptions(o...)
		made <- a
	}()
	var o []pion.ClientOption
	for _, x := range options(x) {
		o = append(o, x)
	}
	client, err := pion.ClientWithOptions(o...)
	require.NoError(b, err)
	server := <-made
	defer client.Close()
	defer server.Close()
	out, err := client.OpenStream(1, sctp.PPIDSegment)
	require.NoError(b, err)
	out.SetReliabilityParams(true, pion.ReliabilityTypeReliable, 0)
	in, err := server.OpenStream(1, sctp.PPIDSegment)
	require.NoError(b, err)
	room := make(chan struct{}, 1)
	out.SetBufferedAmountLowThreshold(sendOctets / 2)
	out.OnBufferedAmountLow(func() {
		select {
		case room <- struct{}{}:
		default:
		}
	})
	received := make(chan error, 1)
	go func() {
		buf := make([]byte, maxPacket)
		for range b.N {
			if _, _, err := in.ReadSCTP(buf); err != nil {
				received <- err
				return
			}
		}
		received <- nil
	}()
	segment := make([]byte, benchmarkSize)
	b.SetBytes(benchmarkSize)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for out.BufferedAmount() > sendOctets {
			<-room
		}
		_, err := out.Write(segment)
		require.NoError(b, err)
	}
	require.NoError(b, <-received)
}

// udpPair makes two sockets that are connected with each other.
func udpPair(b *testing.B) (x, y *net.UDPConn) {
	free := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0"))
	first, err := net.ListenUDP("udp", free)
	require.NoError(b, err)
	at := first.LocalAddr().(*net.UDPAddr)
	x, err = net.DialUDP("udp", nil, at)
	require.NoError(b, err)
	require.NoError(b, first.Close())
	y, err = net.DialUDP("udp", at, x.LocalAddr().(*net.UDPAddr))
	require.NoError(b, err)
	for _, c := range []*net.UDPConn{x, y} {
		enlarge(c)
	}
	return x, y
}
