package mpa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// A scattered script reads into several buffers, too.
type scattered struct {
	script
	scatters int
}

func (s *scattered) Scatter(bufs [][]byte) (int, error) {
	s.scatters++
	total := 0
	for _, b := range bufs {
		for len(b) > 0 {
			n, err := s.Read(b, transport.NoWait)
			if err != nil {
				if total > 0 {
					return total, nil
				}
				return 0, err
			}
			b = b[n:]
			total += n
		}
	}
	return total, nil
}

// A predicter is a Placer that awaits messages of so many octets each. It knows a
// segment of them by its first octet, and takes all others as they are.
type predicter struct {
	t       *testing.T
	sinks   [][]byte
	turn    int // the message that is to come, and
	got     int // how many of its octets have come
	pinned  int
	placed  int // segments that came into place
	strange [][]byte
	seq     uint64
	left    int // octets in the Conn at the end
}

const awaited = 0xc1

func (e *predicter) head(sink, off int) (h [transport.PredictedHeadLen]byte) {
	h[0] = awaited
	binary.BigEndian.PutUint32(h[2:], uint32(sink))
	binary.BigEndian.PutUint64(h[6:], uint64(off))
	return h
}

func (e *predicter) Predict(dst []transport.PredictedSegment, size, room int) []transport.PredictedSegment {
	require.Zero(e.t, e.pinned, "what was pinned has been released")
	e.pinned++
	off := e.got
	for i := e.turn; i < len(e.sinks) && room > 0; i++ {
		sink := e.sinks[i]
		for off < len(sink) && room > 0 {
			n := min(len(sink)-off, size-transport.PredictedHeadLen)
			if n > room {
				return dst
			}
			dst = append(dst, transport.PredictedSegment{Head: e.head(i, off), Payload: sink[off : off+n : off+n]})
			off += n
			room -= n
		}
		off = 0
	}
	return dst
}

func (e *predicter) Unpin() { e.pinned = 0 }

func (e *predicter) came(seq uint64, head []byte, n int) (place []byte) {
	require.Equal(e.t, e.seq, seq, "in order")
	e.seq++
	require.Zero(e.t, e.pinned, "nothing is pinned while segments are taken")
	sink, off := int(binary.BigEndian.Uint32(head[2:])), int(binary.BigEndian.Uint64(head[6:]))
	require.Equal(e.t, [2]int{e.turn, e.got}, [2]int{sink, off}, "the segment that is due")
	place = e.sinks[sink][off : off+n]
	if e.got += n; e.got == len(e.sinks[sink]) {
		e.turn, e.got = e.turn+1, 0
	}
	return place
}

func (e *predicter) Segment(seq uint64, ulpdu []byte) error {
	if ulpdu[0] != awaited {
		require.Equal(e.t, e.seq, seq)
		e.seq++
		e.strange = append(e.strange, bytes.Clone(ulpdu))
		return nil
	}
	head, payload := ulpdu[:transport.PredictedHeadLen], ulpdu[transport.PredictedHeadLen:]
	copy(e.came(seq, head, len(payload)), payload)
	return nil
}

func (e *predicter) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(e, seq, batch)
}

func (e *predicter) Placed(seq uint64, f *transport.PredictedSegment) error {
	place := e.came(seq, f.Head[:], len(f.Payload))
	require.Same(e.t, &place[0], &f.Payload[0], "it is where it belongs")
	e.placed++
	return nil
}

// A conversation of random size: messages that are awaited, cut into segments, and
// others among them.
type responses struct {
	wire    []byte
	want    [][]byte // of the messages
	strange [][]byte
}

func randomResponses(r *rand.Rand, ref reference) *responses {
	c := &responses{}
	ulpdu := predictMin + r.IntN(56000)
	for i := range 1 + r.IntN(6) {
		message := octets(1 + r.IntN(300_000))
		c.want = append(c.want, message)
		for off := 0; off < len(message); {
			if r.IntN(40) == 0 {
				u := octets(20 + r.IntN(3000))
				u[0] = 0x41
				c.strange = append(c.strange, u)
				c.wire = append(c.wire, ref.stream(u)...)
			}
			n := min(len(message)-off, ulpdu-transport.PredictedHeadLen)
			if r.IntN(60) == 0 {
				n = 1 + r.IntN(n) // a peer may cut as it likes
			}
			head := (&predicter{}).head(i, off)
			c.wire = append(c.wire, ref.stream(append(head[:], message[off:off+n]...))...)
			off += n
		}
	}
	return c
}

// run feeds the octets to a Conn, cut at random.
func (c *responses) run(t *testing.T, r *rand.Rand, crc bool) (*predicter, *scattered, error) {
	s := &scattered{}
	for rest := c.wire; len(rest) > 0; {
		n := min(len(rest), 1+r.IntN(700_000))
		s.reads = append(s.reads, rest[:n], nil)
		rest = rest[n:]
	}
	e := &predicter{t: t}
	for _, m := range c.want {
		e.sinks = append(e.sinks, make([]byte, len(m)))
	}
	conn := newConn(s, Options{}, &Terms{CRC: crc})
	for len(s.reads) > 0 {
		if err := conn.Receive(e, transport.NoWait); err != nil && !errors.Is(err, transport.ErrAgain) {
			return e, s, err
		}
	}
	e.left = len(conn.in.octets())
	return e, s, nil
}

func TestPredictedOctetsAreWhereTheyBelong(t *testing.T) {
	placed, scatters := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		crc := seed%2 == 0
		c := randomResponses(r, reference{crc: crc})
		e, s, err := c.run(t, r, crc)
		require.NoError(t, err)
		require.Zero(t, e.left)
		require.Equal(t, len(c.want), e.turn, "every message has come, seed %d", seed)
		for i := range c.want {
			require.True(t, bytes.Equal(c.want[i], e.sinks[i]), "message %d of seed %d", i, seed)
		}
		require.Equal(t, c.strange, e.strange, "and what was not predicted, seed %d", seed)
		placed, scatters = placed+e.placed, scatters+s.scatters
	}
	require.Greater(t, placed, 200, "most came straight into place")
	require.Greater(t, scatters, 60)
}

func TestPredictedOctetsAreVerified(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := randomResponses(r, reference{crc: true})
		at := r.IntN(len(c.wire))
		c.wire[at] ^= 1 << r.IntN(8)
		e, _, err := c.run(t, r, true)
		if err == nil { // a length that has become longer than what there is
			require.Less(t, e.turn, len(c.want), "the message with the wrong octet has not come")
			continue
		}
		var fault *transport.Fault
		require.ErrorAs(t, err, &fault)
		require.Equal(t, transport.MPACRC, fault.Code)
		for i := range e.turn {
			require.True(t, bytes.Equal(c.want[i], e.sinks[i]), "what was delivered is right")
		}
	}
}

// TestMPA_33_44_84_CorruptPredictedFPDU: one read brings two predicted FPDUs and one that was not predicted.
func TestMPA_33_44_84_CorruptPredictedFPDU(t *testing.T) {
	const n = 10_000
	ref := reference{crc: true}
	segment := func(sink, off int) []byte {
		head := (&predicter{}).head(sink, off)
		return ref.stream(append(head[:], octets(n)...))
	}
	for corrupt := range 2 {
		var usual, read []byte
		for i := range 10 { // enough to make the next read a scattered one
			usual = append(usual, segment(0, i*n)...)
		}
		for i := range 2 {
			fpdu := segment(1, i*n)
			if i == corrupt {
				fpdu[n/2] ^= 1
			}
			read = append(read, fpdu...)
		}
		read = append(read, ref.stream(octets(40))...)
		s := &scattered{script: script{reads: [][]byte{usual, read}}}
		e := &predicter{t: t, sinks: [][]byte{make([]byte, 10*n), make([]byte, 2*n)}}
		c := newConn(s, Options{}, &Terms{CRC: true})
		err := c.Receive(e, transport.NoWait)
		for err == nil {
			err = c.Receive(e, transport.NoWait)
		}
		requireFault(t, transport.MPACRC, err, "FPDU %d is corrupt", corrupt)
		require.NotZero(t, s.scatters, "it was predicted")
		require.Equal(t, [2]int{1, corrupt * n}, [2]int{e.turn, e.got}, "what came before it is delivered, and no more of the message")
		require.Empty(t, e.strange, "nor what came behind it")
		require.Equal(t, err, c.Receive(e, transport.NoWait), "which is told again")
		require.Empty(t, e.strange)
	}
}
