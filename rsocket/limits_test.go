package rsocket

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestRSK_16_LimitsOfTheRNIC fail a Dial, or refuse a peer, and everything is released.
func TestRSK_16_LimitsOfTheRNIC(t *testing.T) {
	l := listen(t, open(t), "tcp", nil)
	for name, limits := range map[string]iwarp.Limits{
		"no PD": {MaxPD: 1}, "no CQ": {MaxCQ: 1}, "one MR": {MaxMR: 1}, "two MRs": {MaxMR: 2}, "three MRs": {MaxMR: 3},
	} {
		rnic, err := iwarp.Open(&iwarp.Config{Limits: limits})
		require.NoError(t, err)
		pd, err := rnic.AllocPD()
		require.NoError(t, err)
		cq, err := rnic.CreateCQ(1)
		require.NoError(t, err)
		_, err = Dial(within(t), rnic, "tcp", l.Addr().String(), nil)
		require.ErrorIs(t, err, iwarp.ErrLimit, name)

		few := listen(t, rnic, "tcp", nil)
		_, err = Dial(within(t), l.rnic, "tcp", few.Addr().String(), nil)
		require.Error(t, err, "it is refused")
		require.NoError(t, few.Close())
		require.NoError(t, cq.Close())
		require.NoError(t, pd.Close())
		require.NoError(t, rnic.Close())
	}
}

// TestRSK_8_Empty calls do not wait, and report the end.
func TestRSK_8_Empty(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		for range 3 {
			n, err := a.Write(nil)
			require.NoError(t, err)
			require.Zero(t, n)
			n, err = a.Read(nil)
			require.NoError(t, err)
			require.Zero(t, n)
		}
		closeBoth(a, b)
		_, err := a.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = a.Write(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = a.ReadFrom(failing{})
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = a.WriteTo(io.Discard)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// A gate is a Reader and a Writer of one octet that waits until it is opened.
type gate struct {
	entered, opened chan struct{}
}

func (g gate) wait() {
	close(g.entered)
	<-g.opened
}

func (g gate) Read(p []byte) (int, error) {
	g.wait()
	return copy(p, "x"), nil
}

func (g gate) Write(p []byte) (int, error) {
	g.wait()
	return len(p), nil
}

// TestRSK_10_CloseDuringCopies: what ReadFrom reads after Close is neither sent nor reported as sent.
func TestRSK_10_CloseDuringCopies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		_, err := b.Write([]byte("x"))
		require.NoError(t, err)
		reads, writes := gate{make(chan struct{}), make(chan struct{})}, gate{make(chan struct{}), make(chan struct{})}
		type result struct {
			n   int64
			err error
		}
		sent, got := make(chan result, 1), make(chan result, 1)
		go func() {
			n, err := a.ReadFrom(reads)
			sent <- result{n, err}
		}()
		go func() {
			n, err := a.WriteTo(writes)
			got <- result{n, err}
		}()
		<-reads.entered
		<-writes.entered
		require.NoError(t, a.Close())
		close(reads.opened)
		close(writes.opened)
		r := <-sent
		require.Zero(t, r.n)
		require.ErrorIs(t, r.err, net.ErrClosed)
		r = <-got
		require.EqualValues(t, 1, r.n)
		require.ErrorIs(t, r.err, net.ErrClosed)
		rest, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Empty(t, rest)
	})
}
