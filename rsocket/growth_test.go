package rsocket

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A stuck is a Buffer whose WriteAt waits, and with it whoever closes its region.
type stuck struct{ entered, opened chan struct{} }

func (stuck) Size() int64 { return 1 }

func (stuck) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (s stuck) WriteAt(p []byte, _ int64) (int, error) {
	close(s.entered)
	<-s.opened
	return len(p), nil
}

// TestRSK_17_NoGrowthBehindTheEnd: what the program reads while the memory of a connection is given back does not make it grow, since
// that region would stay, and the PD with it.
func TestRSK_17_NoGrowthBehindTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// The region of another connection holds up the release of the memory.
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
