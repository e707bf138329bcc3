package iwarp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// dribblersOf keeps up to n connections to addr. Each sends an octet of a Request now and then, and comes back a second
// after a refusal. dribblersOf returns when they are established.
func dribblersOf(t *testing.T, addr string, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var gone, there sync.WaitGroup
	t.Cleanup(func() { cancel(); gone.Wait() })
	there.Add(n)
	request := []byte(wiretest.RequestKey + "\x40\x01\x02\x00")
	for range n {
		gone.Go(func() {
			var d net.Dialer
			arrive := sync.OnceFunc(there.Done)
			defer arrive()
			for ctx.Err() == nil {
				c, err := d.DialContext(ctx, "tcp", addr)
				if err != nil {
					continue
				}
				arrive()
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				for i := 0; ; i++ {
					if _, err := c.Write(request[i%len(request):][:1]); err != nil {
						break
					}
					select {
					case <-time.After(500 * time.Millisecond):
					case <-ctx.Done():
					}
				}
				stop()
				_ = c.Close()
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
		})
	}
	there.Wait()
}

// TestSEC_42_SlowRequestsOverTCP: with the default limit, and with a limit that they reach. If the oldest made no room,
// an honest peer would wait for more than a minute. TestSEC_2_42_SlowRequestsDoNotBlockOthers tests in virtual time how
// soon the peer gets its answer: a busy machine needs more than the default timeouts for a set-up over TLS.
func TestSEC_42_SlowRequestsOverTCP(t *testing.T) {
	certificate, roots := selfsigned.New("iwarp.test")
	for name, lc := range map[string]*iwarp.ListenConfig{
		"default limit": {},
		"a limit":       {MaxHalfOpen: 256},
		"TLS":           {TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}},
	} {
		t.Run(name, func(t *testing.T) {
			const dribblers, honest = 2400, 20
			const bound = 40 * time.Second // a busy machine may accept hundreds of connections before the honest one
			s := newSide(t, nil)
			lc.SetupTimeout, lc.ProgressTimeout = bound, bound
			l, err := s.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", lc)
			require.NoError(t, err)
			answered := make(chan error, 1)
			go func() {
				for {
					cr, err := l.Accept(context.Background())
					if err != nil {
						answered <- err
						return
					}
					_ = cr.Reject(nil)
				}
			}()
			dribblersOf(t, l.Addr().String(), dribblers)
			var cfg *tls.Config
			if lc.TLS != nil {
				cfg = &tls.Config{RootCAs: roots, ServerName: "iwarp.test"}
			}
			for range honest {
				ctx, cancel := context.WithTimeout(t.Context(), bound)
				_, err := s.rnic.Dial(ctx, "tcp", l.Addr().String(), &iwarp.QPConfig{PD: s.pd, TLS: cfg})
				cancel()
				require.ErrorIs(t, err, iwarp.ErrRejected, "an honest peer gets its answer")
			}
			require.NoError(t, l.Close())
			require.True(t, errors.Is(<-answered, net.ErrClosed))
		})
	}
}
