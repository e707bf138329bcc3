package cm_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/transport"
)

// A flood is a set of bad Requests, which must not be accepted. Each connection sends one of them.
type flood struct {
	s    *vault
	bad  [][]byte
	rnd  *rand.Rand
	sent int
}

// newFlood makes a Request with a wrong MAC, one of an unknown key, one without a block, one of mode A
// that was accepted before, one that is stale, and one of mode B that was accepted before.
func newFlood(t *testing.T, v *vault, stale, a, b *cm.Auth) *flood {
	t.Helper()
	forged := requestOf(t, initiates(t, b), "hello")
	forged[len(forged)-1] ^= 1
	unknown := requestOf(t, initiates(t, b), "hello")
	unknown[frameOff+8]++
	plain := startOf("Req", 0x50, 0)
	f := &flood{s: v, rnd: rand.New(rand.NewPCG(1, 2)), bad: [][]byte{forged, unknown, plain, requestOf(t, initiates(t, stale), "")}}
	for _, from := range []*cm.Auth{a, b} {
		i := &intruder{dialRaw(t, v.addr), initiates(t, from)}
		request := requestOf(t, i.session, "hello")
		i.Write(request)
		_, err := i.session.Open(frameFrom(i.Peer), frameOff)
		require.NoError(t, err)
		if from == b {
			i.Send(append([]byte("\x41\x43\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"), i.first()...))
		}
		o := v.next()
		require.NoError(t, o.err)
		i.Close()
		<-o.qp.Done()
		<-v.rnic.Events()
		f.bad = append(f.bad, request)
	}
	return f
}

// strikes opens a connection with a bad Request, and then does nothing more with it.
func (f *flood) strikes() {
	p := dialRaw(f.s, f.s.addr)
	p.Write(f.bad[f.rnd.IntN(len(f.bad))])
	f.sent++
}

// TestCM_24_27_40_FloodOfBadRequests: nine of ten connections are bad. Honest peers connect as fast as
// before, and what the others leave is bounded, and ends.
func TestCM_24_27_40_FloodOfBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := map[cm.Mode]*cm.Auth{}
		var sa *cm.Auth
		for _, m := range []cm.Mode{cm.ModeA, cm.ModeB} {
			clients[m], sa = authsOf(t, func(client, server *cm.Config) { client.Mode = m })
		}
		stale, _ := authsOf(t, func(client, _ *cm.Config) {
			client.Mode, client.Now = cm.ModeA, func() time.Time { return time.Now().Add(-time.Minute) }
		})
		log := new(countingHandler)
		v := &vault{host: newHost(t, sa, "pipe", nil, &iwarp.Config{Logger: log.logger()}), auth: sa}
		f := newFlood(t, v, stale, clients[cm.ModeA], clients[cm.ModeB])
		logged := log.count()
		goroutines := runtime.NumGoroutine()
		honest := 0
		for range 100 {
			for range 18 {
				f.strikes()
			}
			for _, m := range []cm.Mode{cm.ModeA, cm.ModeB} {
				began := time.Now()
				c := newSite(t, clients[m], nil)
				qp, err := c.rnic.Dial(t.Context(), "pipe", v.addr, c.asks())
				require.NoError(t, err, "after %d bad ones", f.sent)
				o := v.next()
				for ; o.err != nil; o = v.next() {
					require.ErrorIs(t, o.err, iwarp.ErrAuth)
				}
				require.Zero(t, time.Since(began), "they do not delay it")
				require.Equal(t, export(t, qp), export(t, o.qp))
				require.NoError(t, qp.Abort())
				require.NoError(t, c.rnic.Close())
				honest++
				e := <-v.rnic.Events()
				require.Equal(t, iwarp.EventConnectionLost, e.Kind)
			}
			require.LessOrEqual(t, sa.Stats().HalfOpen, 5*10*18, "those of the last five seconds")
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		require.Equal(t, uint64(honest+2), sa.Stats().Accepted)
		require.Zero(t, sa.Stats().HalfOpen)
		require.Empty(t, v.rnic.Events())
		require.LessOrEqual(t, log.count(), logged+honest, "the RNIC's log tells of admitted peers alone")
		require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+10, "they leave none")
		for len(v.outcomes) > 0 {
			require.ErrorIs(t, (<-v.outcomes).err, iwarp.ErrAuth)
		}
		v.wantQuiet("after a flood")
	})
}

// TestCM_40_HalfOpenSetUpsAreBounded: set-ups beyond the limit get BUSY, and ended set-ups make room.
func TestCM_40_HalfOpenSetUpsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 20
		ca, sa := authsOf(t, func(_, server *cm.Config) { server.Limits.MaxHalfOpen = most })
		v := &vault{host: newHost(t, sa, "pipe", nil, nil), auth: sa, client: ca}
		old := requestOf(t, initiates(t, ca), "")
		for n := range 5 * most {
			p := dialRaw(t, v.addr)
			p.Write(old)
			reply := frameFrom(p)
			require.Equal(t, n >= most, reply[16]&0x20 != 0)
			if n >= most {
				require.Equal(t, byte(cm.CodeBusy), reply[frameOff+8])
			}
		}
		c := newSite(t, ca, nil)
		_, err := c.rnic.Dial(t.Context(), "pipe", v.addr, c.asks())
		var r *cm.Refusal
		require.ErrorAs(t, err, &r)
		require.Equal(t, cm.CodeBusy, r.Code)
		require.Equal(t, most, sa.Stats().HalfOpen)
		time.Sleep(6 * time.Second)
		for range most {
			require.ErrorIs(t, v.next().err, iwarp.ErrAuth)
		}
		v.admits()
		v.wantQuiet("after too many set-ups")
	})
}

// TestCM_41_DribbledFramesAreBounded: on both sides, a Request by SetupTimeout, and a Reply by
// the context of Dial.
func TestCM_41_DribbledFramesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, sa := authsOf(t, nil)
		v := &vault{host: newHost(t, sa, "pipe", nil, nil), auth: sa, client: ca}
		var all sync.WaitGroup
		for range 50 {
			p := dialRaw(t, v.addr)
			all.Go(func() {
				began := time.Now()
				p.Dribble(startOf("Req", 0x50, 200), 500*time.Millisecond)
				if d := time.Since(began); d > 6*time.Second {
					t.Errorf("a Request took %v", d)
				}
			})
		}
		time.Sleep(3 * time.Second)
		require.Zero(t, sa.Stats().HalfOpen, "what is not complete costs no session")
		v.admits()
		all.Wait()

		l, err := transport.Listen(t.Context(), "pipe", "", transport.Options{})
		require.NoError(t, err)
		defer l.Close()
		c := newSite(t, ca, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		all.Go(func() {
			s, err := l.Accept()
			if err != nil {
				return
			}
			defer s.Close()
			for _, b := range startOf("Rep", 0x50, 200) {
				time.Sleep(time.Second)
				if _, err := s.Write([]byte{b}); err != nil {
					return
				}
			}
		})
		began := time.Now()
		_, err = c.rnic.Dial(ctx, "pipe", l.Addr().String(), c.asks())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began))
		all.Wait()
		c.wantQuiet("after a dribbled Reply")
	})
}

// TestCM_14_KeysAreSwappedUnderLoad: each client has the old or the new key. The server has both as
// long as there are set-ups with either. No set-up is refused.
func TestCM_14_KeysAreSwappedUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := func(id uint64) (client, server cm.Key) {
			return cm.Key{ID: id, Secret: cm.ClientKey(master, id, clientID), Primary: true},
				cm.Key{ID: id, Secret: master, Derive: true}
		}
		firstClient, firstServer := keys(1)
		clientRing, serverRing := ringOf(t, firstClient), ringOf(t, firstServer)
		ca, sa := authsOf(t, func(client, server *cm.Config) { client.Ring, server.Ring = clientRing, serverRing })
		h := newHost(t, sa, "pipe", nil, nil)
		h.closes = true
		c := newSite(t, ca, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_, was := keys(1)
			for id := uint64(2); ctx.Err() == nil; id++ {
				mine, theirs := keys(id)
				require.NoError(t, serverRing.Replace(was, theirs))
				require.NoError(t, clientRing.Replace(mine))
				was = theirs
				time.Sleep(100 * time.Millisecond)
			}
		})
		var used sync.Map
		var connected atomic.Int64
		for range 10 { // 500 connections a second in all
			all.Go(func() {
				for ctx.Err() == nil {
					time.Sleep(20 * time.Millisecond)
					qp, err := c.rnic.Dial(context.Background(), "pipe", h.addr, c.asks())
					if err != nil {
						t.Errorf("refused: %v", err)
						return
					}
					p, _ := qp.Peer()
					used.Store(p.KeyID, true)
					connected.Add(1)
					all.Go(func() { _ = qp.Close() }) // an Abort could take the first message back
				}
			})
		}
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			for _, s := range []*site{c, h.site} { // Events are taken
				for len(s.rnic.Events()) > 0 {
					<-s.rnic.Events()
				}
			}
		}
		cancel()
		all.Wait()
		n := 0
		used.Range(func(any, any) bool { n++; return true })
		require.GreaterOrEqual(t, n, 45, "keys were swapped meanwhile")
		require.Greater(t, connected.Load(), int64(2400))
		require.Empty(t, sa.AccessLog(), "no set-up was refused")
	})
}
