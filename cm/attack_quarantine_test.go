package cm_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

const canary = 0xc5

// A vault is a host with memory that any admitted peer may read and write.
type vault struct {
	*host
	auth   *cm.Auth
	client *cm.Auth
	mem    []byte
	mr     *iwarp.MR
	cq     *iwarp.CQ
}

// newVault makes a vault on the pipe. setup may post to the QPs before their Reply is sent.
func newVault(t *testing.T, cfg *iwarp.Config, setup func(v *vault, qp *iwarp.QP) error) *vault {
	t.Helper()
	ca, sa := authsOf(t, func(_, server *cm.Config) { server.Limits = unlimited })
	v := &vault{host: newHost(t, sa, "pipe", nil, cfg), auth: sa, client: ca, mem: bytes.Repeat([]byte{canary}, 64)}
	var err error
	v.mr, err = v.pd.RegisterMR(v.mem, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead|stag.RemoteAtomic, nil)
	require.NoError(t, err)
	v.cq, err = v.rnic.CreateCQ(1 << 12)
	require.NoError(t, err)
	v.answers = func() *iwarp.QPConfig {
		qc := &iwarp.QPConfig{PD: v.pd, SendCQ: v.cq, RecvCQ: v.cq, PrivateData: []byte("world"), Commit: new(iwarp.CommitOptions)}
		if setup != nil {
			qc.Setup = func(_ context.Context, qp *iwarp.QP) error { return setup(v, qp) }
		}
		return qc
	}
	return v
}

// wantUntouched requires that an attack has had no effect.
func (v *vault) wantUntouched() {
	v.Helper()
	require.Equal(v, bytes.Repeat([]byte{canary}, len(v.mem)), v.mem, "memory is as it was")
	var wcs [1]iwarp.WC
	require.Zero(v, v.cq.Poll(wcs[:]), "nothing was completed")
	require.NoError(v, v.mr.Close(), "nothing holds the region")
	v.wantQuiet("after an attack in quarantine")
	require.Zero(v, v.auth.Stats().HalfOpen)
	require.Zero(v, v.auth.Stats().Accepted)
	var err error
	v.mr, err = v.pd.RegisterMR(v.mem, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead|stag.RemoteAtomic, nil)
	require.NoError(v, err)
}

// admits requires that a client with the right key is admitted.
func (v *vault) admits() {
	v.Helper()
	c := newSite(v.T, v.client, nil)
	qp, err := c.rnic.Dial(v.Context(), "pipe", v.addr, c.asks())
	require.NoError(v, err)
	o := v.next()
	require.NoError(v, o.err)
	export(v, qp)
	require.NoError(v, qp.Abort())
	<-o.qp.Done()
	<-v.rnic.Events()
}

// TestCM_21_WhatComesInPlaceOfTheFirstMessage: whatever it is, it ends the stream.
func TestCM_21_WhatComesInPlaceOfTheFirstMessage(t *testing.T) {
	longer := func(v *vault, i *intruder) []byte { return append(i.first(), 0) }
	for _, a := range []struct {
		name    string
		segment func(v *vault, i *intruder) []byte
	}{
		{"a Write", func(v *vault, _ *intruder) []byte { return wiretest.Write(v.mr.STag(), 0, "overwritten") }},
		{"an empty Write", func(*vault, *intruder) []byte { return wiretest.Write(0, 0, "") }},
		{"a Write that is not the last segment", func(v *vault, _ *intruder) []byte {
			return wiretest.Tagged(0x81, 0x40, v.mr.STag(), 0, "overwritten")
		}},
		{"a Read Request", func(v *vault, _ *intruder) []byte { return wiretest.ReadRequest(1, 1, 0, 8, v.mr.STag(), 0) }},
		{"an empty Read Request", func(*vault, *intruder) []byte { return wiretest.ReadRequest(1, 0, 0, 0, 0, 0) }},
		{"a Read Response", func(v *vault, _ *intruder) []byte { return wiretest.ReadResponse(0xc1, v.mr.STag(), 0, "response") }},
		{"an atomic operation", func(*vault, *intruder) []byte {
			return wiretest.Untagged(0x41, 0x4a, 0, 1, 1, 0, strings.Repeat("\x00", 52))
		}},
		{"a Commit", func(*vault, *intruder) []byte {
			return wiretest.Untagged(0x41, 0x4c, 0, 1, 1, 0, strings.Repeat("\x00", 28))
		}},
		{"Immediate Data", func(*vault, *intruder) []byte { return wiretest.Untagged(0x41, 0x48, 0, 0, 1, 0, "12345678") }},
		{"another Send", func(*vault, *intruder) []byte { return wiretest.Send(1, 0, "something else") }},
		{"an empty Send", func(*vault, *intruder) []byte { return wiretest.Send(1, 0, "") }},
		{"another Send of the length", func(*vault, *intruder) []byte { return wiretest.Send(1, 0, strings.Repeat("x", 40)) }},
		{"a shorter one", func(_ *vault, i *intruder) []byte { return wiretest.Send(1, 0, string(i.first()[:39])) }},
		{"a longer one", func(v *vault, i *intruder) []byte { return wiretest.Send(1, 0, string(longer(v, i))) }},
		{"one in two segments", func(_ *vault, i *intruder) []byte {
			return wiretest.Untagged(0x01, 0x43, 0, 0, 1, 0, string(i.first()[:20]))
		}},
		{"one with another MSN", func(_ *vault, i *intruder) []byte { return wiretest.Send(2, 0, string(i.first())) }},
		{"one with an offset", func(_ *vault, i *intruder) []byte { return wiretest.Send(1, 40, string(i.first())) }},
		{"one that invalidates", func(v *vault, i *intruder) []byte {
			return wiretest.Untagged(0x41, 0x44, uint32(v.mr.STag()), 0, 1, 0, string(i.first()))
		}},
		{"one that is solicited", func(_ *vault, i *intruder) []byte {
			return wiretest.Untagged(0x41, 0x45, 0, 0, 1, 0, string(i.first()))
		}},
		{"one of the wrong queue", func(_ *vault, i *intruder) []byte {
			return wiretest.Untagged(0x41, 0x43, 0, 1, 1, 0, string(i.first()))
		}},
	} {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVault(t, nil, nil)
				i := quarantined(t, v.client, v.addr)
				i.Send(a.segment(v, i), wiretest.Send(1, 0, string(i.first())), wiretest.Write(v.mr.STag(), 0, "too late"))
				i.WantTerminate("the stream ends", 0x0207)
				i.WantEOF("the Terminate is the last message")
				i.Close()
				require.ErrorIs(t, v.next().err, iwarp.ErrAuth)
				v.wantUntouched()
				v.admits()
			})
		})
	}
}

// TestCM_21_24_EndsInQuarantine: without any message instead of the first one.
func TestCM_21_24_EndsInQuarantine(t *testing.T) {
	for _, a := range []struct {
		name string
		ends func(v *vault, i *intruder)
		is   error // besides ErrAuth
	}{
		{"silence", func(_ *vault, i *intruder) {
			began := time.Now()
			i.WantClosed("T_fin is over")
			require.Equal(i, 5*time.Second, time.Since(began))
		}, context.DeadlineExceeded},
		{"dribbled octets", func(_ *vault, i *intruder) {
			began := time.Now()
			i.Dribble(wiretest.FPDU(wiretest.Send(1, 0, string(i.first()))), 100*time.Millisecond)
			require.Less(i, time.Since(began), 5200*time.Millisecond, "they do not extend it")
		}, nil},
		{"a Terminate", func(_ *vault, i *intruder) {
			i.Send(wiretest.Terminate(0x0207, wiretest.NoHeader, nil))
			i.WantEOF("a Terminate is taken")
			i.Close()
		}, nil},
		{"half of it", func(_ *vault, i *intruder) {
			b := wiretest.FPDU(wiretest.Send(1, 0, string(i.first())))
			i.Write(b[:len(b)/2])
			i.CloseWrite()
		}, nil},
		{"the end of its half", func(_ *vault, i *intruder) {
			i.CloseWrite()
			i.WantEOF("this half, too")
		}, nil},
		{"the end of the connection", func(_ *vault, i *intruder) { i.Close() }, nil},
		{"a reset", func(_ *vault, i *intruder) { i.Abort() }, nil},
		{"a wrong CRC", func(_ *vault, i *intruder) {
			b := wiretest.FPDU(wiretest.Send(1, 0, string(i.first())))
			b[len(b)-1] ^= 1
			i.Write(b)
			i.Close()
		}, nil},
	} {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVault(t, nil, nil)
				i := quarantined(t, v.client, v.addr)
				a.ends(v, i)
				o := v.next()
				require.ErrorIs(t, o.err, iwarp.ErrAuth)
				if a.is != nil {
					require.ErrorIs(t, o.err, a.is)
				}
				require.Equal(t, uint64(1), v.auth.Stats().Refused[cm.ReasonNoFirst], "it is audited")
				v.wantUntouched()
				v.admits()
			})
		})
	}
}

// TestCM_24_TheContextOfAcceptEndsInQuarantine: the error says so.
func TestCM_24_TheContextOfAcceptEndsInQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, sa := authsOf(t, nil)
		s := newSite(t, sa, nil)
		l, err := s.rnic.Listen(t.Context(), "pipe", "", &iwarp.ListenConfig{Auth: s.auth})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		i := &intruder{dialRaw(t, l.Addr().String()), initiates(t, ca)}
		i.Write(requestOf(t, i.session, ""))
		cr, err := l.Accept(ctx)
		require.NoError(t, err)
		accepted := make(chan error, 1)
		go func() {
			_, err := cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd})
			accepted <- err
		}()
		frameFrom(i.Peer)
		synctest.Wait()
		require.Empty(t, accepted)
		require.Equal(t, 1, sa.Stats().HalfOpen)
		cancel()
		err = <-accepted
		require.ErrorIs(t, err, iwarp.ErrAuth)
		require.ErrorIs(t, err, context.Canceled)
		s.wantQuiet("after the end of the context")
		require.Zero(t, sa.Stats().HalfOpen)
	})
}

// TestCM_24_CloseAndShutdownEndAQuarantine: at once, and they leave nothing.
func TestCM_24_CloseAndShutdownEndAQuarantine(t *testing.T) {
	for _, end := range []func(r *iwarp.RNIC) error{
		(*iwarp.RNIC).Close,
		func(r *iwarp.RNIC) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			return r.Shutdown(ctx)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := newVault(t, nil, func(v *vault, qp *iwarp.QP) error {
				return qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("early")})
			})
			i := quarantined(t, v.client, v.addr)
			synctest.Wait()
			began := time.Now()
			_ = end(v.rnic) // it may count the QP as one that ended with an error
			require.Less(t, time.Since(began), time.Second)
			require.ErrorIs(t, v.next().err, net.ErrClosed)
			i.WantClosed("nothing that was posted leaves")
			require.Zero(t, v.auth.Stats().HalfOpen)
			for e := range v.rnic.Events() {
				require.Fail(t, "an Event", "%v", e.Kind)
			}
		})
	}
}

// TestCM_23_WorkOfSetupWaitsForTheFirstMessage: and receives follow it, one for each message.
func TestCM_23_WorkOfSetupWaitsForTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(countingHandler)
		v := newVault(t, &iwarp.Config{Logger: log.logger()}, func(v *vault, qp *iwarp.QP) error {
			return errors.Join(
				qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{v.mr.Slice(0, 8)}}),
				qp.PostRecv(iwarp.RecvWR{ID: 2, Local: []iwarp.SGE{v.mr.Slice(8, 8)}}),
				qp.PostSend(iwarp.SendWR{ID: 3, Op: iwarp.OpSend, Inline: []byte("early")}))
		})
		i := quarantined(t, v.client, v.addr)
		i.WantIdle("nothing is sent before the first message", 4*time.Second)
		require.Zero(t, log.count(), "nor is the log told of a peer that may be anyone")
		require.Empty(t, v.outcomes)
		i.Send(wiretest.Send(1, 0, string(i.first())), wiretest.Send(2, 0, "one"), wiretest.Send(3, 0, "two"), wiretest.Write(v.mr.STag(), 16, "three"))
		o := v.next()
		require.NoError(t, o.err)
		require.Equal(t, wiretest.Send(1, 0, "early"), i.Segment())
		synctest.Wait()
		require.Equal(t, "one", string(v.mem[:3]))
		require.Equal(t, "two", string(v.mem[8:11]))
		require.Equal(t, "three", string(v.mem[16:21]))
		var wcs [4]iwarp.WC
		require.Equal(t, 3, v.cq.Poll(wcs[:]), "the first message has no completion")
		for _, wc := range wcs[:3] {
			require.Equal(t, iwarp.StatusSuccess, wc.Status)
		}

		// Another one like it is an ordinary message.
		require.NoError(t, o.qp.PostRecv(iwarp.RecvWR{ID: 4, Local: []iwarp.SGE{v.mr.Slice(0, 64)}}))
		i.Send(wiretest.Send(4, 0, string(i.first())))
		synctest.Wait()
		require.Equal(t, 1, v.cq.Poll(wcs[:]))
		require.Equal(t, i.first(), v.mem[:40])
		require.NoError(t, o.qp.Abort())
	})
}

// TestCM_24_PeerThatEndsBehindItsFirstMessage: it has proved its identity, and its messages arrive.
func TestCM_24_PeerThatEndsBehindItsFirstMessage(t *testing.T) {
	for range 20 { // the end may be noticed before the application is admitted
		synctest.Test(t, func(t *testing.T) {
			v := newVault(t, nil, func(v *vault, qp *iwarp.QP) error {
				return qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{v.mr.Slice(0, 8)}})
			})
			i := quarantined(t, v.client, v.addr)
			i.Send(wiretest.Send(1, 0, string(i.first())), wiretest.Send(2, 0, "farewell"))
			i.Close()
			o := v.next()
			require.NoError(t, o.err)
			<-o.qp.Done()
			require.Equal(t, "farewell", string(v.mem[:8]))
			require.Equal(t, o.qp, (<-v.rnic.Events()).QP)
		})
	}
}

// TestCM_25_DataRightBehindTheFirstMessage: they are posted in the initiator's Setup.
func TestCM_25_DataRightBehindTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(t, nil, func(v *vault, qp *iwarp.QP) error {
			return qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{v.mr.Slice(0, 8)}})
		})
		c := newSite(t, v.client, nil)
		qc := c.asks()
		qc.Setup = func(_ context.Context, qp *iwarp.QP) error {
			return qp.PostSend(
				iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("written"), Remote: v.mr.Advertise(8, 8)},
				iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("sent")})
		}
		qp, err := c.rnic.Dial(t.Context(), "pipe", v.addr, qc)
		require.NoError(t, err)
		o := v.next()
		require.NoError(t, o.err)
		synctest.Wait()
		require.Equal(t, "sent", string(v.mem[:4]))
		require.Equal(t, "written", string(v.mem[8:15]))
		var wcs [3]iwarp.WC
		require.Equal(t, 2, qp.SendCQ().Poll(wcs[:]), "the first message has no completion here either")
	})
}

// TestCM_24_ReplayedRequestsDelayNoOne: there are a hundred of them in quarantine.
func TestCM_24_ReplayedRequestsDelayNoOne(t *testing.T) {
	delay := func(t *testing.T, replays int) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			v := newVault(t, nil, nil)
			old := requestOf(t, initiates(t, v.client), "hello")
			for range replays {
				p := dialRaw(t, v.addr)
				p.Write(old)
				frameFrom(p)
			}
			require.Equal(t, replays, v.auth.Stats().HalfOpen)
			began := time.Now()
			v.admits()
			d = time.Since(began)
			for range replays {
				require.ErrorIs(t, v.next().err, iwarp.ErrAuth)
			}
			require.Equal(t, uint64(replays), v.auth.Stats().Refused[cm.ReasonNoFirst])
			require.Zero(t, v.auth.Stats().HalfOpen)
			require.NoError(t, v.mr.Close())
			v.wantQuiet("after replayed Requests")
		})
		return d
	}
	require.LessOrEqual(t, delay(t, 100), delay(t, 1))
}

// TestCM_21_InitiatorIsTold: it learns that its first message was not accepted.
func TestCM_21_InitiatorIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(t, nil, nil)
		m := &relay{first: func(ulpdu []byte) []byte { ulpdu[len(ulpdu)-1] ^= 1; return ulpdu }}
		c := newSite(t, v.client, nil)
		var relayed sync.WaitGroup
		qp, err := c.rnic.Client(t.Context(), m.between(t, &relayed, "pipe", v.addr), c.asks())
		require.NoError(t, err)
		<-qp.Done()
		require.ErrorIs(t, qp.Err(), iwarp.ErrAuth)
		require.Equal(t, iwarp.EventTerminateReceived, (<-c.rnic.Events()).Kind)
		o := v.next()
		require.ErrorIs(t, o.err, iwarp.ErrAuth)
		relayed.Wait()
		require.Equal(t, uint64(1), v.auth.Stats().Refused[cm.ReasonBadFirst])
		v.wantUntouched()
	})
}
