package rma

import (
	"bytes"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// numbers is how many numbers a counter has.
const numbers = 1 << 48

// servedConn returns the connection of the server.
func (w *pair) servedConn() *conn {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for c := range w.server.conns {
		return c
	}
	return nil
}

// jump makes n the number of the next message of a connection, which its peer also expects.
func jump(from, to *conn, n uint64) {
	from.mu.Lock()
	next, _ := from.sendCtr.Next()
	from.sendCtr.Skip(n - next - 1)
	from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	to.recvCtr = n
}

// TestKEY_9_MessagesAreNumberedToTheEnd: the message with the last number arrives. Instead of the next
// message, the connection ends.
func TestKEY_9_MessagesAreNumberedToTheEnd(t *testing.T) {
	t.Run("of a client", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := start(t, plan{})
			h, p := w.opens(), w.portal(1)
			jump(w.client.c, w.servedConn(), numbers-1)
			require.NoError(t, does(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)}).Err)
			end := does(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)})
			require.ErrorIs(t, end.Err, net.ErrClosed)
			require.ErrorIs(t, end.Err, regionkey.ErrExhausted)
			<-w.client.Done()
			require.ErrorIs(t, w.client.Err(), regionkey.ErrExhausted)
			require.Error(t, <-w.served)
			w.served = nil
		})
	})
	t.Run("of a server", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := start(t, plan{})
			h, p := w.opens(), w.portal(1)
			jump(w.servedConn(), w.client.c, numbers-1)
			require.NoError(t, does(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 16)}).Err)
			buf := bytes.Repeat([]byte{0xa5}, 16)
			end := does(t, p, Command{Op: Read, Handle: h, Buf: buf})
			require.ErrorIs(t, end.Err, net.ErrClosed)
			require.Equal(t, bytes.Repeat([]byte{0xa5}, 16), buf)
			require.ErrorIs(t, <-w.served, regionkey.ErrExhausted)
			w.served = nil
		})
	})
}

// TestKEY_9_DataAreNumberedToTheEnd: when the numbers of data are used up, the connection ends, and no other
// octets are sent instead of those that cannot be sealed.
func TestKEY_9_DataAreNumberedToTheEnd(t *testing.T) {
	t.Run("of a client", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w, r, h, p := asks(t, plan{}, 0)
			w.client.c.dataCtr.Skip(numbers)
			posts(t, p, Command{Op: Write, Handle: h, Buf: octets(1, 16)})
			msg := r.receives(wire.TypeWriteReq)
			mem, tag := r.sink(32)
			m := wire.Pull{Length: 16, SinkSTag: uint32(tag), Timeout: 500 * time.Millisecond}
			r.sends(m.Append(nil, r.header(id(msg)), r.out))
			_, _, err := r.next()
			require.ErrorIs(t, err, net.ErrClosed, "there is no DATA")
			require.Equal(t, make([]byte, 32), mem, "nothing is written")
			end := p.ended(t)
			require.ErrorIs(t, end.Err, regionkey.ErrExhausted)
			require.ErrorIs(t, end.Err, net.ErrClosed)
			w.close()
		})
	})
	t.Run("of a server", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w, r := plays(t, plan{})
			w.mem.Update(func(b []byte) { copy(b, "sixteen octets!!") })
			synctest.Wait()
			w.servedConn().dataCtr.Skip(numbers)
			mem, tag := r.sink(32)
			r.reads(2, wire.ReadReq{Region: regionID, Epoch: 1, Length: 16, SinkSTag: uint32(tag), TTL: time.Second}, r.sealer(regionkey.Read, regionkey.Initiator))
			_, _, err := r.next()
			require.ErrorIs(t, err, net.ErrClosed, "there is no answer")
			require.Equal(t, make([]byte, 32), mem, "nothing is written")
			require.ErrorIs(t, <-w.served, regionkey.ErrExhausted)
			w.served = nil
			w.wantNothingLeft()
		})
	})
}
