package rsocket

import (
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
