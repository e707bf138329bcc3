package rsocket

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A stuck is a Buffer whose WriteAt waits, so that the goroutine that closes its region waits, too.
type stuck struct{ entered, opened chan struct{} }

func (stuck) Size() int64 { return 1 }

func (stuck) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (s stuck) WriteAt(p []byte, _ int64) (int, error) {
	close(s.entered)
	<-s.opened
	return len(p), nil
}

// TestRSK_17_NoGrowthBehindTheEnd: reads while the memory of a connection is released do not make it grow, since
// the new region would stay, and the PD with it.
func TestRSK_17_NoGrowthBehindTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// The region of another connection delays the release of the memory.
		s := stuck{make(chan struct{}), make(chan struct{})}
		open := sync.OnceFunc(func() { close(s.opened) })
		defer open()
		other, its := pair(t, "pipe", &Config{IOMap: 1}, &Config{IOMap: 1})
		require.NoError(t, its.MapBuffer(s, 0))
		_, err := its.Write([]byte("x"))
		require.NoError(t, err)
		_, err = other.Read(make([]byte, 1))
		require.NoError(t, err)
		_, err = other.WriteMapped([]byte("x"), 0)
		require.NoError(t, err)
		<-s.entered

		a, b := pair(t, "pipe", &Config{ReadBuffer: 8192}, nil)
		_, err = b.Write(make([]byte, 4096))
		require.NoError(t, err)
		synctest.Wait()
		a.mu.Lock()
		a.mem.mapped = append(a.mem.mapped, its.mem.mapped[0])
		a.stream.Came(time.Hour) // the next half is to be larger
		a.mu.Unlock()
		require.NoError(t, b.qp.Abort())
		synctest.Wait()
		select {
		case <-a.done:
			t.Fatal("it is held up")
		default:
		}
		_, err = io.ReadFull(a, make([]byte, 4096))
		require.NoError(t, err)
		a.mu.Lock()
		state, grown := a.state, a.mem.halves[0].mr
		a.mu.Unlock()
		require.Equal(t, ended, state)
		require.Nil(t, grown)
		open()
		<-a.done
	})
}

// TestRSK_17_MemoryThatWasReplaced is released: a connection has no more than MaxReadBuffer.
func TestRSK_17_MemoryThatWasReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", &Config{ReadBuffer: 8192, MaxReadBuffer: 32768}, nil)
		size := func() (n int) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return len(a.mem.in) + len(a.mem.halves[0].mem) + len(a.mem.halves[1].mem)
		}
		require.Equal(t, 8192, size())
		for i, half := range []int{4096, 4096, 8192, 8192, 16384, 16384} {
			sent := bytes.Repeat([]byte{byte(i)}, half)
			_, err := b.Write(sent)
			require.NoError(t, err)
			synctest.Wait()
			a.mu.Lock()
			a.stream.Came(time.Duration(i+1) * time.Hour) // the next half is to be larger
			a.mu.Unlock()
			got := make([]byte, half)
			_, err = io.ReadFull(a, got)
			require.NoError(t, err)
			require.Equal(t, sent, got)
			require.LessOrEqual(t, size(), 32768)
		}
		require.Equal(t, 32768, size())
	})
}
