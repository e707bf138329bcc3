package rsocket

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// mappedPrivate is the private data of a raw peer that has room for one entry.
func mappedPrivate() wire.Private {
	p := itsPrivate
	p.IOMap = 1
	return p
}

// TestRSK_18_OnTheWire: an entry is a Write behind the slots and a message; octets written by offset are only a Write.
func TestRSK_18_OnTheWire(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cfg := small
		cfg.IOMap = 300
		s := meet(t, &cfg, mappedPrivate())
		require.EqualValues(t, 0x82, s.told.IOMap, "in units of 256")
		mem := make([]byte, 100)
		require.NoError(t, s.conn.Map(mem, 7))
		require.ErrorIs(t, s.conn.Map(mem, 200), ErrNotMapped, "the peer has room for one")
		_, err := s.conn.WriteMapped([]byte("x"), 0)
		require.ErrorIs(t, err, ErrNotMapped, "it has not told")

		s.Send(s.entry(511, wire.Entry{Offset: 1000, Slot: wire.Slot{Addr: 0x7000, Key: 0x700, Length: 50}}), s.message(wire.OpIOMapSGL, 511))
		require.Equal(t, wire.OpSGL, s.nextMessage().Op())
		u := s.Segment()
		require.Equal(t, []byte{0xc1, 0x40, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x20}, u[:14], "behind two slots")
		e := wire.ParseEntry((*[wire.EntrySize]byte)(u[14:]), wire.Little)
		require.Equal(t, wire.Entry{Offset: 7, Slot: wire.Slot{Key: e.Key, Length: 100}}, e)
		s.wants(wire.NewMessage(wire.OpIOMapSGL, 0))

		synctest.Wait()
		n, err := s.conn.WriteMapped([]byte("hello"), 1002)
		require.NoError(t, err)
		require.Equal(t, 5, n)
		s.WantSegment("a Write alone", "c140 00000700 0000000000007002", []byte("hello")...)
		n, err = s.conn.WriteMapped([]byte("beyond"), 1048)
		require.ErrorIs(t, err, ErrNotMapped)
		require.Equal(t, 2, n, "what there is room for is written")
		s.WantSegment("its beginning", "c140 00000700 0000000000007030", []byte("be")...)

		s.Send(s.writeTo(e.Slot, "by the peer"), s.write(0, "!"), s.message(wire.OpData, 1))
		_, err = io.ReadFull(s.conn, make([]byte, 1))
		require.NoError(t, err)
		require.Equal(t, "by the peer", string(mem[:11]))
	})
}

// A doing is a Buffer whose WriteAt is a function.
type doing func()

func (b doing) Size() int64 { return 8 }

func (b doing) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (b doing) WriteAt(p []byte, _ int64) (int, error) {
	b()
	return len(p), nil
}

// TestRSK_10_CloseFromInsideABuffer does not wait for itself, and loses nothing that was written. A goroutine of the QP
// calls the method, or one in Read.
func TestRSK_10_CloseFromInsideABuffer(t *testing.T) {
	for _, reads := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			a, b := unclosedPair(t, open(t), "pipe", nil, &Config{IOMap: 1})
			const n = 200_000
			closed := make(chan error, 1)
			require.NoError(t, a.MapBuffer(doing(func() { closed <- a.Close() }), 0))
			_, err := a.Write(make([]byte, n))
			require.NoError(t, err)
			read := make(chan error, 1)
			if reads {
				go func() {
					_, err := a.Read(make([]byte, 1))
					read <- err
				}()
			}
			synctest.Wait()
			_, err = b.WriteMapped(make([]byte, 8), 0)
			require.NoError(t, err)
			begin := time.Now()
			require.ErrorIs(t, <-closed, endwait.ErrInBuffer)
			require.Zero(t, time.Since(begin))
			require.ErrorIs(t, a.Close(), net.ErrClosed)

			got, err := io.Copy(io.Discard, b)
			require.NoError(t, err)
			require.EqualValues(t, n, got)
			_ = b.Close() // the connection may have ended before it learned that its octets have left
			<-a.done
			if reads {
				require.ErrorIs(t, <-read, net.ErrClosed)
			}
		})
	}
}

// A board is a Buffer whose last octet is watched.
type board struct {
	mu   sync.Mutex
	mem  [64 << 10]byte
	last chan byte
}

func (b *board) Size() int64 { return int64(len(b.mem)) }

func (b *board) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (b *board) WriteAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := copy(b.mem[off:], p)
	if off+int64(n) == b.Size() {
		b.last <- p[n-1]
	}
	return n, nil
}

// TestWriteMappedOfMoreThanTheWriteBuffer waits for room, by large pieces and by small ones.
func TestWriteMappedOfMoreThanTheWriteBuffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := unclosedPair(t, open(t), "pipe", nil, &Config{IOMap: 1, WriteBuffer: 64 << 10})
		defer closeBoth(a, b)
		talk := func(from, to *Conn) {
			_, err := from.Write([]byte{1})
			require.NoError(t, err)
			_, err = io.ReadFull(to, make([]byte, 1))
			require.NoError(t, err)
		}
		mem, want := make([]byte, 1<<20), make([]byte, 1<<20)
		require.NoError(t, a.Map(mem, 0))
		talk(a, b) // it brings the entry along
		for i := range want {
			want[i] = byte(i * i >> 3)
		}
		n, err := b.WriteMapped(want, 0)
		require.NoError(t, err)
		require.Equal(t, len(want), n)
		for i := range 2000 {
			want[i]++
			_, err := b.WriteMapped(want[i:i+1], uint64(i))
			require.NoError(t, err)
		}
		talk(b, a)
		require.True(t, bytes.Equal(want, mem))
	})
}

// TestRSK_18_TurnsByOffset: each side writes to the memory of the other, and recognises its turn by the last octet, as
// librdmacm's riostream does. No call of Read or Write receives meanwhile.
func TestRSK_18_TurnsByOffset(t *testing.T) {
	for _, network := range []string{"pipe", "tcp"} {
		t.Run(network, func(t *testing.T) {
			cfg := &Config{IOMap: 1}
			a, b := pair(t, network, cfg, cfg)
			play := func(c *Conn, first bool) error {
				mine := &board{last: make(chan byte, 1)}
				if err := c.MapBuffer(mine, 0); err != nil {
					return err
				}
				hello := make([]byte, 16) // it brings the entry along
				if _, err := c.Write(hello); err != nil {
					return err
				}
				if _, err := io.ReadFull(c, hello); err != nil {
					return err
				}
				full := make([]byte, mine.Size())
				for i := range 100 {
					full[len(full)-1] = byte(i)
					if first {
						if _, err := c.WriteMapped(full, 0); err != nil {
							return err
						}
					}
					if got := <-mine.last; got != byte(i) {
						t.Errorf("%d in place of %d", got, i)
					}
					if !first {
						if _, err := c.WriteMapped(full, 0); err != nil {
							return err
						}
					}
				}
				return nil
			}
			done := make(chan error, 1)
			go func() { done <- play(b, false) }()
			require.NoError(t, play(a, true))
			require.NoError(t, <-done)
		})
	}
}

// TestRSK_18_MapThatFails leaves nothing behind.
func TestRSK_18_MapThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxMR: 9}})
		require.NoError(t, err)
		defer func() { require.NoError(t, rnic.Close()) }()
		a, b := unclosedPair(t, rnic, "pipe", nil, &Config{IOMap: 128})
		require.ErrorContains(t, a.Map(nil, 0), "an empty region")
		require.ErrorContains(t, a.MapBuffer(nil, 0), "no buffer: it is nil")
		require.ErrorContains(t, a.MapBuffer(sized(func() int64 { return wire.MaxHalf + 1 }), 0), "at most 1073741824 are possible")
		require.NoError(t, a.Map(make([]byte, 1), 0), "no region is left of those that were refused")
		require.ErrorIs(t, a.Map(make([]byte, 1), 1), iwarp.ErrLimit, "each side has four")
		closeBoth(a, b)
		require.Error(t, a.Map(make([]byte, 1), 0))
		_, err = a.WriteMapped(make([]byte, 1), 0)
		require.Error(t, err)
	})
}

// TestMapFailsAsAWrite: after the deadline of writes, and after CloseWrite.
func TestMapFailsAsAWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, rnic.Close()) }()
		a, b := unclosedPair(t, rnic, "pipe", &Config{IOMap: 128}, &Config{IOMap: 128})
		require.NoError(t, b.Map(make([]byte, 1), 0))
		_, err = b.Write([]byte("x"))
		require.NoError(t, err)
		_, err = a.Read(make([]byte, 1))
		require.NoError(t, err)
		fails := func(want error) {
			require.ErrorIs(t, a.Map(make([]byte, 1), 0), want)
			_, err := a.WriteMapped(make([]byte, 1), 0)
			require.ErrorIs(t, err, want)
		}
		require.NoError(t, a.SetWriteDeadline(time.Now()))
		fails(os.ErrDeadlineExceeded)
		require.NoError(t, a.SetWriteDeadline(time.Time{}))
		_, err = a.WriteMapped(make([]byte, 1), 0)
		require.NoError(t, err)
		require.NoError(t, a.CloseWrite())
		fails(io.ErrClosedPipe)
		closeBoth(a, b)
	})
}

// A sized is a Buffer whose size is a function.
type sized func() int64

func (b sized) Size() int64 { return b() }

func (b sized) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (b sized) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// TestRSK_18_TheSizeOfABuffer is requested once, and may wait for a goroutine that uses the Conn.
func TestRSK_18_TheSizeOfABuffer(t *testing.T) {
	a, _ := pair(t, "pipe", nil, &Config{IOMap: 1})
	asked := 0
	require.NoError(t, a.MapBuffer(sized(func() int64 {
		asked++
		written := make(chan error, 1)
		go func() {
			_, err := a.Write([]byte("x"))
			written <- err
		}()
		select {
		case err := <-written:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Error("Write waits for Size, which waits for Write")
		}
		return 8
	}), 0))
	require.Equal(t, 1, asked)
}

// TestRSK_18_TheConnectionEndsBeforeTheSizeIsThere, and everything is released.
func TestRSK_18_TheConnectionEndsBeforeTheSizeIsThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxPD: 2}})
		require.NoError(t, err)
		defer func() { require.NoError(t, rnic.Close()) }()
		for _, size := range []int64{8, 0} {
			a, b := unclosedPair(t, rnic, "pipe", nil, &Config{IOMap: 1})
			require.ErrorIs(t, a.MapBuffer(sized(func() int64 {
				closeBoth(a, b)
				return size
			}), 0), net.ErrClosed)
		}
		for range 2 {
			pd, err := rnic.AllocPD()
			require.NoError(t, err, "those of the connections are closed")
			defer func() { require.NoError(t, pd.Close()) }()
		}
	})
}

// TestRSK_18_MapBeyondTheLastOffset is refused, for the peer would end the connection.
func TestRSK_18_MapBeyondTheLastOffset(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, rnic.Close()) }()
		a, b := unclosedPair(t, rnic, "pipe", nil, &Config{IOMap: 128})
		require.ErrorContains(t, a.Map(make([]byte, 2), math.MaxUint64-1), "an entry of 2 octets")
		require.NoError(t, a.Map(make([]byte, 2), math.MaxUint64-2))
		_, err = a.Write([]byte("x"))
		require.NoError(t, err)
		_, err = b.Read(make([]byte, 1))
		require.NoError(t, err)
		closeBoth(a, b)
	})
}

// TestRSK_18_WithoutTheFlag the octet of the private data with the number of entries has no meaning.
func TestRSK_18_WithoutTheFlag(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := mappedPrivate()
		p.Flags = 0
		s := meet(t, &small, p)
		require.ErrorIs(t, s.conn.Map(make([]byte, 1), 0), ErrNotMapped)
	})
}

// TestRSK_18_EntriesComeAheadOfWhatIsWrittenLater, including entries that wait until others have left the QP.
func TestRSK_18_EntriesComeAheadOfWhatIsWrittenLater(t *testing.T) {
	for _, network := range []string{"pipe", "tcp"} {
		t.Run(network, func(t *testing.T) {
			const entries = 10
			cfg := &Config{IOMap: entries}
			a, b := pair(t, network, cfg, cfg)
			mem := make([]byte, entries)
			for i := range entries {
				require.NoError(t, a.Map(mem[i:i+1], uint64(i)))
			}
			_, err := a.Write([]byte{1})
			require.NoError(t, err)
			_, err = io.ReadFull(b, make([]byte, 1))
			require.NoError(t, err)
			for i := range entries {
				_, err = b.WriteMapped([]byte{2}, uint64(i))
				require.NoError(t, err, i)
			}
		})
	}
}

// TestRSK_18_AnEntryThatIsReplaced while octets wait for room: the rest is written to where the peer has mapped its offset by then.
func TestRSK_18_AnEntryThatIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const buffer, n = 64 << 10, 65 << 10 // the pipe holds less than what is in the write buffer
		s := meet(t, &Config{IOMap: 1, WriteBuffer: buffer}, itsPrivate)
		e := wire.Entry{Slot: wire.Slot{Key: 0x700, Length: n}}
		maps := func() {
			s.Send(s.entry(0, e), s.message(wire.OpIOMapSGL, 0))
			synctest.Wait()
		}
		maps()
		wrote := make(chan error, 1)
		go func() {
			_, err := s.conn.WriteMapped(make([]byte, n), 0)
			wrote <- err
		}()
		synctest.Wait()
		e.Key = 0x800
		maps()
		octets := make(map[uint32]int) // by STag
		for octets[0x700]+octets[0x800] < n {
			if u := s.Segment(); u[0]&0x80 != 0 {
				octets[binary.BigEndian.Uint32(u[2:])] += len(u) - 14
			}
		}
		require.NoError(t, <-wrote)
		require.Equal(t, buffer, octets[0x700])
	})
}
