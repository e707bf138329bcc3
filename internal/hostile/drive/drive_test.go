package drive

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/internal/hostile/attack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve accepts connections and passes what arrives to the channel.
func serve(t *testing.T) (addr string, came <-chan []byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	all := make(chan []byte, 1000)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				_, _ = c.Write([]byte("hello"))
				b, _ := io.ReadAll(c)
				all <- b
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String(), all
}

func TestConversationIsPlayed(t *testing.T) {
	addr, came := serve(t)
	c := attack.Conversation{Layer: attack.TCP, Steps: []attack.Step{
		{Act: attack.Await, Wait: 10 * time.Second},
		{Act: attack.Send, Data: []byte("all ")},
		{Act: attack.Stall, Wait: time.Millisecond},
		{Act: attack.Slow, Data: []byte("of it"), Wait: time.Millisecond},
		{Act: attack.FIN},
		{Act: attack.Await, Wait: 10 * time.Second},
	}}
	o, err := Play(t.Context(), addr, c, 0)
	require.NoError(t, err)
	require.Equal(t, "all of it", string(<-came))
	require.False(t, o.Refused)
	require.EqualValues(t, 9, o.Sent)
	require.EqualValues(t, 5, o.Got)
}

// TestRunHoldsAsManyAsAsked: it takes the layers in turn, and ends.
func TestRunHoldsAsManyAsAsked(t *testing.T) {
	addr, _ := serve(t)
	addrs := map[attack.Layer]string{attack.TCP: addr, attack.MPA: addr}
	tally, err := Run(t.Context(), Options{Addrs: addrs, Seed: 1, N: 50, MaxGap: time.Millisecond})
	require.NoError(t, err)
	require.EqualValues(t, 50, tally.Total().Conversations)
	require.EqualValues(t, 25, tally.Layers[attack.MPA].Conversations)
	require.Zero(t, tally.Total().Refused)
	require.Contains(t, tally.String(), "mpa")

	_, err = Run(t.Context(), Options{})
	require.Error(t, err)
}

func TestRunEndsWithItsContext(t *testing.T) {
	addr, _ := serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	tally, err := Run(ctx, Options{Addrs: map[attack.Layer]string{attack.TCP: addr}})
	require.NoError(t, err)
	require.NotZero(t, tally.Total().Conversations)
}

// TestNoConversationWithoutTime: a conversation without time for a connection was not held, and says nothing about the
// target.
func TestNoConversationWithoutTime(t *testing.T) {
	addr, _ := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Play(ctx, addr, attack.Conversation{Layer: attack.TCP}, 0)
	require.ErrorIs(t, err, context.Canceled)
}

// TestAttackersWithoutATarget: they go on.
func TestAttackersWithoutATarget(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	tally, err := Run(t.Context(), Options{Addrs: map[attack.Layer]string{attack.TCP: addr}, N: 3})
	require.NoError(t, err)
	require.EqualValues(t, 3, tally.Total().Refused)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	tally, err = Run(ctx, Options{Addrs: map[attack.Layer]string{attack.TCP: addr}})
	require.NoError(t, err)
	require.Equal(t, tally.Total().Conversations, tally.Total().Refused, "none of them was held when the time was over")
}

// TestAssociationTakesTagAndCookie: it takes them from an INIT ACK, and nothing from any other chunk.
func TestAssociationTakesTagAndCookie(t *testing.T) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer c.Close()
	conn, err := net.Dial("udp", c.LocalAddr().String())
	require.NoError(t, err)
	defer conn.Close()
	a := &attacker{Conn: conn, association: &association{}}
	p := make([]byte, headerSize+20)
	p[headerSize], p[headerSize+7] = chunkInitAck, 9
	a.heard(append(p, 0, paramCookie, 0, 7, 1, 2, 3, 0))
	require.EqualValues(t, 9, a.tag)
	require.Equal(t, []byte{chunkCookie, 0, 0, 7, 1 ^ 8, 2, 3, 0}, a.cookieEcho([]byte{8}))
	require.Equal(t, byte(9), a.packet([]byte{0, 0, 0, 4})[7])
	require.Zero(t, a.packet([]byte{chunkInit, 0, 0, 4})[7], "an INIT has no tag")
	for _, bad := range [][]byte{nil, p[:20], append(p, 0, paramCookie, 0, 3), append(p, 0, paramCookie, 0, 99)} {
		a.heard(bad)
	}
	require.Equal(t, []byte{1, 2, 3}, a.cookie)
}
