package iwarp_test

import (
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// clientHello is the beginning of a ClientHello whose record has 256 octets.
const clientHello = "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03"

// TestAttackSlowSetUp: an octet each 1.5 s, which is progress, in each phase of the set-up. It ends at the timeout all the
// same, nothing is answered, and the place of the connection is free again.
func TestAttackSlowSetUp(t *testing.T) {
	const timeout = 5 * time.Second
	for name, x := range map[string]struct {
		octets string
		tls    bool
	}{
		"the key":           {octets: wiretest.RequestKey},
		"the header":        {octets: wiretest.RequestKey[:14]},
		"private data":      {octets: wiretest.RequestKey + "\x40\x01\x02\x00"},
		"the TLS handshake": {octets: clientHello, tls: true},
		"the TLS record":    {octets: clientHello[:3], tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				v := newLonelyVictim(t)
				lc := &iwarp.ListenConfig{SetupTimeout: timeout, MaxHalfOpen: 4}
				if x.tls {
					cert, _ := selfsigned.New("iwarp.test")
					lc.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
				}
				l, err := v.rnic.Listen(testContext(t), "pipe", "", lc)
				require.NoError(t, err)
				defer l.Close()
				start := time.Now()
				ended := make(chan time.Duration, 4)
				for range cap(ended) {
					c, err := transport.Dial(t.Context(), "pipe", l.Addr().String(), transport.Options{})
					require.NoError(t, err)
					p := &wiretest.Peer{TB: t, Conn: c}
					p.Write([]byte(x.octets))
					go func() {
						p.Dribble(nil, 1500*time.Millisecond)
						_ = c.Close()
						ended <- time.Since(start)
					}()
				}
				for range cap(ended) {
					require.LessOrEqual(t, <-ended, timeout+1500*time.Millisecond, "an octet that comes does not extend the timeout")
				}
				v.othersLive()
			})
		})
	}
}

// TestAttackSlowStream: a peer stops in each phase of a stream, and sends an octet each second from then on. Its
// stream is not ended for that, because a peer may be slow. It delays neither another queue pair nor its own end.
func TestAttackSlowStream(t *testing.T) {
	const size = 1 << 10
	long := func(b []byte) []byte { return wiretest.FPDU(append(b, make([]byte, size)...)) }
	for name, x := range map[string]func(v *victim) []byte{
		"behind the Reply":         func(*victim) []byte { return nil },
		"in the length of an FPDU": func(*victim) []byte { return []byte{4} },
		"in a header": func(v *victim) []byte {
			return long(wiretest.Write(v.mr.STag(), regionTO, ""))[:9]
		},
		"in the payload of an RDMA Write": func(v *victim) []byte {
			return long(wiretest.Write(v.mr.STag(), regionTO, ""))[:30]
		},
		"in the payload of a Send": func(*victim) []byte { return long(wiretest.Send(1, 0, ""))[:100] },
		"in a Read Request": func(v *victim) []byte {
			return wiretest.FPDU(wiretest.ReadRequest(1, 1, 0, 8, v.mr.STag(), regionTO))[:40]
		},
		"in a Terminate": func(*victim) []byte {
			return wiretest.FPDU(wiretest.Untagged(0x41, 0x47, 0, 2, 1, 0, "\x12\x03\x00\x00"))[:20]
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				v.posts()
				synctest.Wait()
				if b := x(v); len(b) > 0 {
					v.p.Write(b)
				}
				for range 5 {
					time.Sleep(time.Second)
					if _, err := v.p.Conn.Write([]byte{0}); err != nil {
						break
					}
					v.othersLive()
				}
				start := time.Now()
				require.NoError(t, v.mr.Close(), "a region is revoked, whatever is under way")
				require.Less(t, time.Since(start), time.Second)
				require.NoError(t, v.qp.Abort())
				require.Less(t, time.Since(start), time.Second)
				<-v.qp.Done()
				require.ErrorIs(t, v.qp.Err(), net.ErrClosed)
				v.othersLive()
			})
		})
	}
}

// TestAttackSlowReader: a peer asks for much and takes an octet at a time. Its own answers wait, and nothing else.
func TestAttackSlowReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newVictim(t, iwarp.QPConfig{IRD: 16})
		_, large := v.register(1<<20, stag.LocalWrite|stag.RemoteRead, nil)
		for msn := range uint32(16) {
			v.p.Send(wiretest.ReadRequest(msn+1, 1, 0, 1<<20, large.STag(), 0))
		}
		for range 30 {
			v.p.Read(1)
			time.Sleep(time.Second)
			v.othersLive()
		}
		require.Equal(t, iwarp.StateRTS, v.qp.State())
		start := time.Now()
		require.NoError(t, v.qp.Abort())
		require.NoError(t, large.Close())
		require.Less(t, time.Since(start), time.Second)
		v.othersLive()
	})
}
