package sctpudp

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	pion "github.com/pion/sctp"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport/sctp"
)

const (
	// benchmarkSize is the size of the messages of all benchmarks.
	benchmarkSize = 8100
	// benchmarkRun is how many of them one run of a comparison sends: 100 ms or so.
	benchmarkRun = 1000
)

// BenchmarkSession sends segments over a session, in one process.
func BenchmarkSession(b *testing.B) { benchmark(b, sessionMover(b)) }

// BenchmarkPion is the same over pion itself, between two connected UDP sockets.
func BenchmarkPion(b *testing.B) { benchmark(b, pionMover(b)) }

// BenchmarkAgainstPion has a session and pion itself move the same, in turn, and compares
// the two runs of each turn: a machine may be faster in one minute than in the next. An
// operation is a turn; the median of their ratios is what counts.
func BenchmarkAgainstPion(b *testing.B) {
	session, other := sessionMover(b), pionMover(b)
	for range 5 { // both windows are wide open before it counts
		session(benchmarkRun)
		other(benchmarkRun)
	}
	ratios := make([]float64, 0, b.N)
	var ours, theirs []float64
	b.ResetTimer()
	for range b.N {
		x, y := rate(session), rate(other)
		ours, theirs, ratios = append(ours, x), append(theirs, y), append(ratios, x/y)
	}
	b.ReportMetric(median(ours), "session-MB/s")
	b.ReportMetric(median(theirs), "pion-MB/s")
	b.ReportMetric(median(ratios), "of-pion")
}

// A mover sends so many messages and returns when the last has been received.
type mover func(messages int)

func benchmark(b *testing.B, move mover) {
	b.SetBytes(benchmarkSize)
	b.ReportAllocs()
	b.ResetTimer()
	move(b.N)
}

func rate(move mover) float64 {
	start := time.Now()
	move(benchmarkRun)
	return benchmarkRun * benchmarkSize / time.Since(start).Seconds() / 1e6
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

func sessionMover(b *testing.B) mover {
	l, err := Listen(b.Context(), Config{}, "127.0.0.1:0", 1)
	require.NoError(b, err)
	b.Cleanup(l.End)
	c := NewClient(Config{})
	b.Cleanup(c.Close)
	p := &pair{TB: b, l: l, c: c}
	client, server := p.session(b.Context())
	segment := make([]byte, benchmarkSize)
	return func(messages int) {
		received := make(chan error, 1)
		go func() { received <- placertest.Receive(server, &placertest.Counter{Left: messages}) }()
		for range messages {
			for !client.Append(segment, nil, true) {
				require.NoError(b, client.Flush(true))
			}
		}
		require.NoError(b, client.Flush(true))
		require.NoError(b, <-received)
	}
}

func pionMover(b *testing.B) mover {
	x, y := udpPair(b)
	made := make(chan *pion.Association, 1)
	options := func(c net.Conn) []pion.AssociationOption {
		return []pion.AssociationOption{
			pion.WithNetConn(c), pion.WithMTU(maxPacket), pion.WithMaxReceiveBufferSize(receiveBuffer),
			pion.WithEnableInterleaving(false), pion.WithLoggerFactory(noLog{}),
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
	b.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
	})
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
	segment := make([]byte, benchmarkSize)
	return func(messages int) {
		received := make(chan error, 1)
		go func() {
			buf := make([]byte, maxPacket)
			for range messages {
				if _, _, err := in.ReadSCTP(buf); err != nil {
					received <- err
					return
				}
			}
			received <- nil
		}()
		for range messages {
			for out.BufferedAmount() > sendOctets {
				<-room
			}
			_, err := out.Write(segment)
			require.NoError(b, err)
		}
		require.NoError(b, <-received)
	}
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
