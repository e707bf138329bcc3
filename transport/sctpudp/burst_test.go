package sctpudp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// TestPacketsOfABurstAreAcknowledged: every second one, and every one while a chunk is missing (RFC 9260 sections 6.2 and 6.7), although
// all have come before pion looks at the first.
func TestPacketsOfABurstAreAcknowledged(t *testing.T) {
	const packets = 100
	for name, c := range map[string]struct {
		missing uint32
		want    int
	}{
		"in order":       {0, packets / 2},
		"one is missing": {1, packets},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(x *victim) {
				x.session(3)
				x.answers()
				next := x.tsn() + c.missing
				x.a.mu.Lock()
				for i := range uint32(packets) {
					b := new([maxPacket]byte)
					address(b[:], ports{7, 7}, victimTag)
					segment := data(flagsMessage, next+i, 3, sctp.PPIDSegment, octets("0001 41"))
					require.True(x, x.a.push(b, headerSize+copy(b[headerSize:], segment)))
				}
				x.a.mu.Unlock()
				require.Len(x, x.chunks(chunkSack), c.want)
				if c.missing > 0 { // when it has come nothing is
					x.says(victimTag, data(flagsMessage, next-1, 3, sctp.PPIDSegment, octets("0001 41")))
					require.False(x, x.a.misses())
				}
			})
		})
	}
}

// TestPacketThatIsNotAcknowledged, because the association ends, does not hold up those behind it for long.
func TestPacketThatIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newConn := func() *conn {
			c := &conn{a: &association{done: make(chan struct{})}, closed: make(chan struct{}), sacked: make(chan struct{}, 1)}
			c.unacked.Store(2)
			return c
		}
		late := newConn()
		for range 2 {
			start := time.Now()
			late.settle()
			require.Equal(t, ackTime, time.Since(start))
		}
		for _, end := range []func(c *conn){
			func(c *conn) { close(c.a.done) },
			func(c *conn) { close(c.closed) },
			func(c *conn) { c.noteSACK() },
		} {
			c, start, settled := newConn(), time.Now(), make(chan struct{})
			go func() {
				defer close(settled)
				c.settle()
			}()
			synctest.Wait()
			end(c)
			<-settled
			require.Zero(t, time.Since(start))
		}
	})
}
