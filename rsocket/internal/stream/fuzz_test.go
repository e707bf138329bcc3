package stream

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// FuzzRSK_20_Peer lets a peer send any messages and slots to a program that reads, writes and ends as it likes.
func FuzzRSK_20_Peer(f *testing.F) {
	const (
		message = iota
		slot
		reads
		writes
		sends
		completes
		ends
		kinds
	)
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
	f.Fuzz(func(t *testing.T, steps []byte) {
		s := New(common.config(), common.private())
		table := &oneSlot{}
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
			case reads:
				_, n := s.Readable()
				s.Consume(min(n, int(v%5000)))
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
				[]func(){s.Shutdown, s.Disconnect, s.Abandon, s.Discard}[v%4]()
			}
			checkBounds(t, s, posted)
		}
	})
}

func checkBounds(t *testing.T, s *Stream, posted int) {
	off, n := s.Readable()
	require.True(t, off >= 0 && n >= 0 && off+n <= 2*common.half, "%d %d", off, n)
	off, n = s.Room()
	require.True(t, off >= 0 && n >= 0 && off+n <= common.ring, "%d %d", off, n)
	require.True(t, s.in.read <= s.in.got && s.in.got <= s.in.told && s.in.told <= s.in.read+2*uint64(common.half))
	require.True(t, s.in.seq <= s.in.count && s.in.count <= s.in.limit)
	require.LessOrEqual(t, s.out.sent, s.out.limit)
	require.Equal(t, s.posts.n, posted)
	require.LessOrEqual(t, 2*posted, Depth)
}
