package rsocket

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// exchange writes n octets on both ends at once, in pieces of a maximum size, and compares what each
// reads.
func exchange(t *testing.T, a, b *Conn, n, piece int) {
	t.Helper()
	var all sync.WaitGroup
	for _, d := range []struct {
		from, to *Conn
		seed     uint64
	}{{a, b, 1}, {b, a, 2}} {
		sent := sha256.New()
		octets := make([]byte, n)
		fill := rand.NewChaCha8([32]byte{byte(d.seed)})
		_, _ = fill.Read(octets)
		sent.Write(octets)
		all.Go(func() {
			for left := octets; len(left) > 0; {
				k := min(piece, len(left))
				if _, err := d.from.Write(left[:k]); err != nil {
					t.Error(err)
					return
				}
				left = left[k:]
			}
			if err := d.from.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			got := sha256.New()
			if _, err := io.Copy(got, d.to); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
				t.Error("other octets were read")
			}
		})
	}
	all.Wait()
}

// TestRSK_6_7_BothDirectionsAtOnce runs streams between Conns with all numbers of credits.
func TestRSK_6_7_BothDirectionsAtOnce(t *testing.T) {
	for _, credits := range []int{16, 17, 64, 384, 65534} {
		for _, network := range []string{"pipe", "tcp"} {
			t.Run(fmt.Sprintf("%s/%d", network, credits), func(t *testing.T) {
				few, many := &Config{Credits: credits, ReadBuffer: 16 << 10}, &Config{WriteBuffer: 16 << 10}
				a, b := pair(t, network, few, many)
				exchange(t, a, b, 1<<20, 5000)
				a, b = pair(t, network, many, few)
				exchange(t, a, b, 1<<20, 100_000)
			})
		}
	}
}

// TestRSK_5_WritesOfOneOctet never stall. The environment variable RSOCKET_WRITES sets their number, to
// 1000000 for example.
func TestRSK_5_WritesOfOneOctet(t *testing.T) {
	n := 30_000
	if s := os.Getenv("RSOCKET_WRITES"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	a, b := pair(t, "tcp", nil, nil)
	exchange(t, a, b, n, 1)
}

// TestRSK_17_SmallWrites: most of them have no completion of their own, and all of them release their room and their places in
// the queues.
func TestRSK_17_SmallWrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", &Config{WriteBuffer: minBuffer}, nil)
		exchange(t, a, b, 20_000, 10)
	})
}

// TestRSK_20_WritesThatAreLessThanTheRingAreOneMessage: the end of the ring does not cut them once earlier Writes have left.
func TestRSK_20_WritesThatAreLessThanTheRingAreOneMessage(t *testing.T) {
	for _, how := range []string{"Write", "ReadFrom"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				large := itsPrivate
				large.Half.Length = 64 << 10
				s := meet(t, &small, large)
				s.Send(s.message(wire.OpSGL, 64))
				send := s.conn.Write
				if how == "ReadFrom" {
					send = func(p []byte) (int, error) {
						n, err := s.conn.ReadFrom(bytes.NewReader(p))
						return int(n), err
					}
				}
				_, err := s.conn.Write(make([]byte, 8))
				require.NoError(t, err)
				s.wants(sgl(16), wire.NewMessage(wire.OpData, 8))
				for range 4 {
					synctest.Wait() // the peer may receive a message before the Write of it has completed here
					n, err := send(make([]byte, 5000))
					require.NoError(t, err)
					require.Equal(t, 5000, n)
					s.wants(wire.NewMessage(wire.OpData, 5000))
				}
			})
		})
	}
}

// A part is only a Reader or a Writer, so that io.Copy uses ReadFrom and WriteTo.
type part struct {
	io.Reader
	io.Writer
}

// TestRSK_8_ReadFromAndWriteTo move octets out of a reader and into a writer.
func TestRSK_8_ReadFromAndWriteTo(t *testing.T) {
	a, b := pair(t, "tcp", nil, nil)
	sent := bytes.Repeat([]byte("0123456789"), 100_000)
	copied := make(chan int64, 1)
	go func() {
		n, err := io.Copy(a, part{Reader: bytes.NewReader(sent)})
		if err != nil {
			t.Error(err)
		}
		if err := a.CloseWrite(); err != nil {
			t.Error(err)
		}
		copied <- n
	}()
	var got bytes.Buffer
	n, err := io.Copy(part{Writer: &got}, b)
	require.NoError(t, err)
	require.EqualValues(t, len(sent), n)
	require.Equal(t, sent, got.Bytes())
	require.Equal(t, n, <-copied)
}

// TestRSK_8_CopiesThatFail return the error of the other side, and lose nothing that was taken.
func TestRSK_8_CopiesThatFail(t *testing.T) {
	a, b := pair(t, "tcp", nil, nil)
	n, err := a.ReadFrom(io.MultiReader(bytes.NewReader([]byte("hello")), failing{}))
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.EqualValues(t, 5, n)
	n, err = b.WriteTo(failing{})
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.EqualValues(t, 2, n)
	rest := make([]byte, 10)
	k, err := b.Read(rest)
	require.NoError(t, err)
	require.Equal(t, "llo", string(rest[:k]))
}

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, io.ErrNoProgress }
func (failing) Write([]byte) (int, error) { return 2, io.ErrNoProgress }

// TestRSK_12_AnInitiatorThatOnlyReads sends no more than its SGL, behind which the responder may send.
func TestRSK_12_AnInitiatorThatOnlyReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := listen(t, open(t), "pipe", &small)
		c, err := Dial(within(t), l.rnic, "pipe", l.Addr().String(), &Config{})
		require.NoError(t, err)
		accepted, err := l.AcceptConn()
		require.NoError(t, err)
		defer closeBoth(c, accepted)
		go func() {
			if _, err := accepted.Write(make([]byte, 100_000)); err != nil {
				t.Error(err)
			}
		}()
		_, err = io.ReadFull(c, make([]byte, 100_000))
		require.NoError(t, err)
	})
}

// TestRSK_18_NoIOMap: this side offers no entries.
func TestRSK_18_NoIOMap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		require.Equal(t, wire.FlagIOMap, s.told.Flags)
		require.Zero(t, s.told.IOMap)
		s.Send(s.message(wire.OpIOMapSGL, 0))
		_, err := s.conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, ErrProtocol)
		s.CloseWrite()
	})
}

// TestRSK_17_ReadAndWriteAllocateNothing in a ping-pong.
func TestRSK_17_ReadAndWriteAllocateNothing(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	a, b := pair(t, "tcp", nil, nil)
	go func() {
		buf := make([]byte, 64)
		for {
			if _, err := io.ReadFull(b, buf); err != nil {
				return
			}
			if _, err := b.Write(buf); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64)
	ping := func() {
		_, err := a.Write(buf)
		if err == nil {
			_, err = io.ReadFull(a, buf)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for range 1000 {
		ping()
	}
	require.Less(t, testing.AllocsPerRun(2000, ping), 1.0)
}
