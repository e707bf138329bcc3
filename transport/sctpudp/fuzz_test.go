package sctpudp

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// A void is a socket without a network: what is sent is counted, what comes is what the
// test pushes.
type void struct {
	in   chan []byte
	from netip.AddrPort
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	sent    int // octets
	packets [][]byte
}

func newVoid() *void {
	return &void{in: make(chan []byte), from: netip.MustParseAddrPort("127.0.0.1:8"), done: make(chan struct{})}
}

func (v *void) listen(context.Context, string, string) (net.PacketConn, error) { return v, nil }

func (v *void) ReadFrom(p []byte) (int, net.Addr, error) {
	select {
	case b := <-v.in:
		return copy(p, b), net.UDPAddrFromAddrPort(v.from), nil
	case <-v.done:
		return 0, nil, net.ErrClosed
	}
}

func (v *void) WriteTo(p []byte, _ net.Addr) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sent += len(p)
	v.packets = append(v.packets, append([]byte(nil), p...))
	return len(p), nil
}

func (v *void) Close() error {
	v.once.Do(func() { close(v.done) })
	return nil
}

func (v *void) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:7"))
}
func (v *void) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (v *void) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (v *void) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// A victim is a listener with one association, whose peer is the test.
type victim struct {
	*testing.T
	v *void
	l *Listener
	a *association
}

const victimTag, attackerTag = 0x01010101, 0x02020202

func newVictim(t *testing.T) *victim {
	v := newVoid()
	l, err := Listen(t.Context(), Config{ListenPacket: v.listen}, "127.0.0.1:7", 4)
	require.NoError(t, err)
	ours := initiation{tag: victimTag, window: receiveBuffer, outbound: maxStreams, inbound: maxStreams, tsn: 100}
	theirs := initiation{tag: attackerTag, window: receiveBuffer, outbound: 8, inbound: 8}
	a, err := l.e.establish(way{peer: v.from}, 7, &ours, &theirs, time.Millisecond, l, false)
	require.NoError(t, err)
	return &victim{T: t, v: v, l: l, a: a}
}

// says sends a packet of these chunks, with a tag, and waits until it is dealt with.
func (x *victim) says(tag uint32, chunks []byte) {
	p := append(make([]byte, headerSize), chunks...)
	seal(p, ports{7, 7}, tag)
	select {
	case x.v.in <- p:
	case <-x.v.done:
	}
	synctest.Wait()
}

// data is a DATA chunk: of a whole message, if flags are flagsMessage.
func data(flags byte, tsn uint32, stream uint16, ppid uint32, message []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, tsn)
	b = binary.BigEndian.AppendUint16(b, stream)
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, ppid)
	return appendChunk(nil, chunkData, flags, append(b, message...))
}

// FuzzPackets sends packets to a listener, of a peer that knows its tag and of one that
// does not. Whatever they say, what is kept of it is bounded, and so is what is answered.
func FuzzPackets(f *testing.F) {
	known := func(chunks ...[]byte) []byte {
		var all []byte
		for _, c := range chunks {
			all = append(all, c...)
		}
		return append([]byte{byte(len(all) >> 8), byte(len(all)), 1}, all...)
	}
	unknown := func(chunk []byte) []byte {
		b := known(chunk)
		b[2] = 0
		return b
	}
	init := initiation{tag: 3, window: receiveBuffer, outbound: 8, inbound: 8}
	initiate := data(flagsMessage, 0, 3, sctp.PPIDControl, octets("0000 0005 0001 0001"))
	for _, seed := range [][]byte{
		known(initiate, data(flagsMessage, 1, 3, sctp.PPIDSegment, octets("0001 4143"))),
		known(data(flagsMessage, 5, 9, 1, octets("00"))),
		known(data(6, 0, 1, sctp.PPIDSegment, make([]byte, minPiece)), data(5, 1, 1, sctp.PPIDSegment, octets("01"))),
		known(data(6, 0, 1, 16, octets("00"))), known(data(3, 0, 1, 16, octets("00"))),
		append(known(initiate), known(appendChunk(nil, chunkSack, 0, octets("00000063 00100000 0001 0001 0001 0002 00000000")))...),
		known(appendChunk(nil, chunkHeartbeat, 0, octets("0001 0008 00000000"))),
		known(appendChunk(nil, chunkAbort, 0, nil)), known(appendChunk(nil, chunkShutdown, 0, octets("00000063"))),
		known(appendChunk(nil, chunkShutdownAck, 0, nil)), known(appendChunk(nil, chunkError, 0, octets("00030008 00000000"))),
		known(appendChunk(nil, 192, 0, octets("00000063"))), // FORWARD TSN
		unknown(appendChunk(nil, chunkInit, 0, init.append(nil))),
		unknown(appendChunk(nil, chunkCookieEcho, 0, make([]byte, cookieSize))),
		unknown(appendChunk(nil, chunkShutdownComplete, flagReflected, nil)),
		unknown(initiate),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) { fuzzPackets(t, input) })
	})
}

func fuzzPackets(t *testing.T, input []byte) {
	x := newVictim(t)
	defer x.l.End()
	received := 0
	for range 64 {
		if len(input) < 3 {
			break
		}
		n := min(int(binary.BigEndian.Uint16(input)), len(input)-3, maxPacket-headerSize)
		tag := map[bool]uint32{true: victimTag, false: 0}[input[2]&1 == 1]
		x.says(tag, input[3:][:n])
		received += headerSize + n
		input = input[3+n:]

		require.LessOrEqual(t, x.l.e.count(), 1, "no cookie can be made up")
		require.LessOrEqual(t, x.a.room.octets.Load(), int64(receiveBuffer+maxPacket))
		require.LessOrEqual(t, x.a.room.messages.Load(), int64(maxUnread))
		x.a.mu.Lock()
		require.LessOrEqual(t, len(x.a.streams), 8)
		require.GreaterOrEqual(t, x.a.flight.octets, 0)
		x.a.mu.Unlock()
	}
	x.v.mu.Lock()
	defer x.v.mu.Unlock()
	require.LessOrEqual(t, x.v.sent, 8*received, "a forger cannot have the victim flood another")
}

// FuzzInit parses an INIT or INIT ACK, and opens what may be a cookie of the listener. What was parsed means the
// same when it is written again, and no cookie opens but the listener's own.
func FuzzInit(f *testing.F) {
	i := newInitiation()
	i.cookie = []byte("cookie")
	f.Add(i.append(nil))
	f.Add(octets("11223344 0001a000 000a ffff 55667788 000c 0006 0005 0000 8000 0004 c006 0008 00000001"))
	s, now := newSecret(), time.Now()
	from, at := netip.MustParseAddrPort("192.0.2.1:7"), ports{7, 7}
	good := s.bake(&cookie{made: now, from: from, at: at, ours: newInitiation(), theirs: newInitiation()})
	f.Add(good)
	f.Add(good[:cookieSize-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		_, ok := s.open(b, from, at)
		require.Equal(t, string(b) == string(good), ok)
		i, err := parseInit(b)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(i.cookie), len(b))
		ours := newInitiation()
		require.Positive(t, streams(&ours, &i))
		require.LessOrEqual(t, len(i.reports), maxReports)
		i.reports = nil // they belong to the answer
		again, err := parseInit(i.append(nil))
		require.NoError(t, err)
		i.adaptation = sctp.Adaptation // whatever it was, append gives that of DDP
		require.Equal(t, i, again)
	})
}
