package damage

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// both returns the ends of a connection over a line.
func both(t *testing.T) (l *Line, initiator, responder net.Conn) {
	t.Helper()
	end, err := transport.Listen(t.Context(), "pipe", "", transport.Options{})
	require.NoError(t, err)
	l, err = NewLine(t.Context(), "pipe", end.Addr().String())
	require.NoError(t, err)
	l.BeforeCut = func() { time.Sleep(time.Nanosecond) }
	initiator, err = transport.Dial(t.Context(), "pipe", l.Addr(), transport.Options{})
	require.NoError(t, err)
	responder, err = end.Accept()
	require.NoError(t, err)
	require.NoError(t, end.Close())
	return l, initiator, responder
}

// A receiver reads until the end of a stream.
type receiver struct {
	mu  sync.Mutex
	got string
	err error
}

func receive(c net.Conn) *receiver {
	r := &receiver{}
	go func() {
		b := make([]byte, 100)
		for r.end() == nil {
			n, err := c.Read(b)
			r.mu.Lock()
			r.got, r.err = r.got+string(b[:n]), err
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *receiver) octets() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

func (r *receiver) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// TestLine: what the responder receives of six octets if damage occurs after the second one, and how its stream ends.
func TestLine(t *testing.T) {
	for how, want := range map[string]struct {
		octets string
		ends   error // nil: the stream goes on
		late   time.Duration
	}{
		Reset:     {"ab", syscall.ECONNRESET, 0},
		FIN:       {"ab", io.EOF, 0},
		Corrupt:   {"absdef", nil, 0}, // c, with one bit changed
		Stall:     {"abcdef", nil, For},
		HalfClose: {"ab", io.EOF, 0},
		Vanish:    {"ab", nil, 0},
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, a, b := both(t)
				r := receive(b)
				l.Hold()
				l.Arm(0, 2, how)
				_, err := a.Write([]byte("abcdef"))
				require.NoError(t, err)
				time.Sleep(time.Second)
				require.Empty(t, r.octets(), "it is held")
				l.Release()
				time.Sleep(want.late - time.Nanosecond)
				synctest.Wait()
				if want.late > 0 {
					require.Empty(t, r.octets())
				}
				time.Sleep(2 * time.Nanosecond)
				synctest.Wait()
				require.Equal(t, want.octets, r.octets())
				require.True(t, errors.Is(r.end(), want.ends), "%v", r.end())
				require.Equal(t, len(want.octets), l.Passed(0))
				l.Close()
				synctest.Wait()
				require.Error(t, r.end())
				_ = a.Close()
				_ = b.Close()
			})
		})
	}
}

// TestSockets: what arrives of four datagrams if damage occurs after the first one.
func TestSockets(t *testing.T) {
	for how, want := range map[string][]string{
		Lose:      {"a1", "a3", "a4"},
		HalfClose: {"a1"},
		Vanish:    {"a1"},
		Address:   {"a1", "other2", "other3", "other4"},
		Stall:     {"a1", "a3", "a4", "a2"},
		Corrupt:   {"a1", "a\"", "a3", "a4"},
	} {
		t.Run(how, func(t *testing.T) {
			s := NewSockets(nil)
			a, err := s.Listen(0)(t.Context(), "udp", "127.0.0.1:0")
			require.NoError(t, err)
			b, err := s.Listen(1)(t.Context(), "udp", "127.0.0.1:0")
			require.NoError(t, err)
			s.Arm(0, 1, how)
			began := time.Now()
			for _, text := range []string{"1", "2", "3", "4"} {
				_, err = a.WriteTo([]byte(text), b.LocalAddr())
				require.NoError(t, err)
			}
			slow := time.Since(began) >= For
			require.NoError(t, b.SetReadDeadline(time.Now().Add(10*time.Second)))
			var got []string
			for range want {
				p := make([]byte, 10)
				n, from, err := b.ReadFrom(p)
				require.NoError(t, err)
				name := "other"
				if from.String() == a.LocalAddr().String() {
					name = "a"
				}
				got = append(got, name+string(p[:n]))
			}
			if how == Stall && slow { // the last datagrams were sent after the stall
				require.ElementsMatch(t, want, got)
			} else {
				require.Equal(t, want, got)
			}
			_, err = b.WriteTo([]byte("5"), a.LocalAddr())
			require.NoError(t, err)
			require.Equal(t, map[bool]int{true: 0, false: 1}[how == Vanish], s.Passed(1))
			s.Disarm()
			_, err = a.WriteTo([]byte("6"), b.LocalAddr())
			require.NoError(t, err)
			n, _, err := b.ReadFrom(make([]byte, 10))
			require.NoError(t, err)
			require.Equal(t, 1, n)
			s.Close()
			require.NoError(t, errors.Join(a.Close(), b.Close()))
		})
	}
}

// TestForgedAbort: an SCTP packet becomes an ABORT of its association, with a correct checksum.
func TestForgedAbort(t *testing.T) {
	ports, tag := []byte{0x13, 0x89, 0x13, 0x8a}, []byte{1, 2, 3, 4}
	packet := slices.Concat(ports, tag, []byte("sum."), []byte("chunks"))
	p := abort(packet)
	require.Len(t, p, 16)
	require.Equal(t, slices.Concat(ports, tag), p[:8])
	require.Equal(t, []byte{6, 0, 0, 4}, p[12:], "type ABORT, length 4")
	sum := binary.LittleEndian.Uint32(p[8:])
	clear(p[8:12])
	require.Equal(t, crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)), sum)
	require.Equal(t, "sum.chunks", string(packet[8:]), "the packet stays as it is")
	require.Empty(t, abort(ports), "too short for SCTP")
}
