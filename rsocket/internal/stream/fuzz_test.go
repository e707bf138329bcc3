package stream

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// The kinds of steps.
const (
	message = iota
	slot
	reads
	larger
	maps
	writesMapped
	writes
	sends
	completes
	ends
	kinds
)

// FuzzRSK_20_Peer makes a peer send any messages and slots to a program that reads, writes and ends at any time.
func FuzzRSK_20_Peer(f *testing.F) {
	step := func(kind byte, v uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{kind}, v) }
	join := func(steps ...[]byte) (all []byte) {
		for _, s := range steps {
			all = append(all, s...)
		}
		return all
	}
	f.Add(join(step(message, 100), step(reads, 50), step(sends, 0), step(message, 4000), step(reads, 5000), step(sends, 0)))
	f.Add(join(step(slot, 300), step(message, 0x80000010), step(writes, 4096), step(sends, 0), step(completes, 0), step(writes, 300), step(sends, 0)))
	f.Add(join(step(message, 0xe0000002), step(ends, 0), step(sends, 0), step(message, 0xe0000000), step(completes, 0)))
	f.Fuzz(play)
}

// TestRSK_20_RandomPeers runs many random programs, the same ones each time.
func TestRSK_20_RandomPeers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ops := []uint32{0, 0, 0, 0, 0x80000000, 0x80000000, 0xe0000000, 0xc0000000}
	for range 2000 {
		var steps []byte
		for range r.IntN(100) {
			kind, v := byte(r.IntN(ends)), uint32(r.IntN(3000))
			if kind == message {
				v = v%100 | ops[r.IntN(len(ops))]
			}
			if r.IntN(50) == 0 {
				kind = ends
			}
			steps = binary.LittleEndian.AppendUint32(append(steps, kind), v)
		}
		play(t, steps)
	}
}

// An anyTable has a slot and an entry of the peer's choice.
type anyTable struct {
	oneSlot
	entry wire.Entry
}

func (a *anyTable) Entry(int) wire.Entry { return a.entry }

// play carries out the steps, each of which is a kind and a number.
func play(t *testing.T, steps []byte) {
	cfg, private := common.config(), common.private()
	cfg.IOMap, private.IOMap = 4, 4
	s := New(cfg, private)
	table := &anyTable{}
	posted := 0
	for ; len(steps) >= 5; steps = steps[5:] {
		v := binary.LittleEndian.Uint32(steps[1:])
		switch steps[0] % kinds {
		case message:
			if s.Message(wire.Message(v), table) != nil {
				return
			}
		case slot:
			table.slot = wire.Slot{Addr: uint64(v) << 8, Key: v, Length: v}
			table.entry = wire.Entry{Offset: uint64(v), Slot: table.slot}
		case reads:
			_, _, n := s.Readable()
			s.Consume(min(n, int(v%5000)))
		case larger:
			if s.in.freeHalf(Slots) {
				s.Larger(wire.Slot{Length: 1 + v%5000})
			}
		case maps:
			s.Map(wire.Entry{Slot: wire.Slot{Length: v}})
		case writesMapped:
			if to, ok := s.Mapped(uint64(v)); ok {
				if _, n := s.RingSpace(); n > 0 {
					s.WriteMapped(to, min(n, int(to.Length)))
					posted++
				}
			}
		case writes:
			if _, n := s.Room(); s.Writable() {
				s.Queue(min(n, int(v%5000)))
			}
		case sends:
			for _, ok := s.Next(); ok; _, ok = s.Next() {
				posted++
			}
		case completes:
			if posted > 0 {
				s.Completed()
				posted--
			}
		case ends:
			[]func(){s.Shutdown, s.Disconnect, s.Abandon}[v%3]()
		}
		checkBounds(t, s, posted)
	}
}

func checkBounds(t *testing.T, s *Stream, posted int) {
	in, out := &s.in, &s.out
	half, off, n := s.Readable()
	to, room := s.Room()
	for what, ok := range map[string]bool{
		"what is read is in a half":              off >= 0 && n >= 0 && off+n <= int(in.halves[half].Length),
		"what is written is in the ring":         to >= 0 && room >= 0 && to+room <= common.ring,
		"octets are told, then got, then read":   in.read <= in.got && in.got <= in.told && in.told <= in.read+in.halves[0].size()+in.halves[1].size(),
		"messages are read after they have come": in.seq <= in.count && in.count <= in.limit,
		"no more is sent than may be":            out.sent <= out.limit && out.freed <= out.posted && out.posted <= out.queued,
		"what is not sent is not overwritten":    out.queued-out.freed <= uint64(common.ring),
		"the depth is enough":                    s.posts.n == posted && 2*posted <= Depth,
	} {
		require.True(t, ok, what)
	}
}
