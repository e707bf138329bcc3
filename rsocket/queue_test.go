package rsocket

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestRSK_16_AnRNICWithoutInline: a connection that cannot post a slot ends with the reason, and nothing waits for it.
func TestRSK_16_AnRNICWithoutInline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxInline: 8}})
		require.NoError(t, err)
		defer func() { require.NoError(t, rnic.Close()) }()
		l := listen(t, open(t), "pipe", nil)
		a, err := Dial(within(t), rnic, "pipe", l.Addr().String(), nil)
		require.NoError(t, err)
		b, err := l.AcceptConn()
		require.NoError(t, err)
		defer closeBoth(a, b)
		read := make(chan error, 1)
		go func() {
			_, err := a.Read(make([]byte, 1))
			read <- err
		}()
		select {
		case err := <-read:
			require.ErrorIs(t, err, iwarp.ErrLimit)
		case <-time.After(time.Minute):
			t.Error("Read ends")
		}
		_, err = a.Write([]byte("x"))
		require.ErrorIs(t, err, iwarp.ErrLimit)
	})
}

// TestRSK_4_FewerReceivesThanCredits: the RNIC allows fewer receives than Config.Credits, and the peer is told no more credits than
// there are receives, so that it can use all credits while the program does not read.
func TestRSK_4_FewerReceivesThanCredits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxQueueDepth: 200}})
		require.NoError(t, err)
		defer func() { require.NoError(t, rnic.Close()) }()
		l := listen(t, rnic, "pipe", nil)
		a, err := Dial(within(t), open(t), "pipe", l.Addr().String(), nil)
		require.NoError(t, err)
		b, err := l.AcceptConn()
		require.NoError(t, err)
		defer closeBoth(a, b)
		const n = 384
		wrote := make(chan error, 1)
		go func() {
			for range n {
				if _, err := a.Write([]byte("x")); err != nil {
					wrote <- err
					return
				}
			}
			wrote <- a.CloseWrite()
		}()
		time.Sleep(time.Hour)
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Len(t, got, n)
		require.NoError(t, <-wrote)
	})
}
