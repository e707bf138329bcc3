package rma

import (
	"context"
	"math"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// TestRMA_3_HelloComesFirst: on both sides, and once.
func TestRMA_3_HelloComesFirst(t *testing.T) {
	request := func(r *raw) {
		q := wire.OpenReq{Region: regionID, Ops: wire.OpRead}
		r.sends(q.Append(nil, r.header(1), r.out))
	}
	for name, play := range map[string]func(r *raw){
		"another message first": request,
		"HELLO twice": func(r *raw) {
			r.greets()
			r.sends(r.mine.Append(nil, r.header(0), r.out))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newPair(t, plan{})
				w.serve()
				r := newRaw(w)
				play(r)
				r.wantEnd(w, "HELLO is not the first message")
				w.wantNothingLeft()
				log := w.server.AuditLog()
				require.Contains(t, log[len(log)-1].Reason, "HELLO")
			})
		})
	}
	t.Run("the answer", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newPair(t, plan{})
			answer := make(chan error, 1)
			go func() {
				r := w.raw(w.qps[1], w.plan.server.PD, regionkey.Responder)
				r.receives(wire.TypeHello)
				m := wire.Status{Code: op.RemoteAuth}
				r.sends(m.Append(nil, r.header(1), r.out))
				_, _, err := r.next()
				answer <- err
			}()
			_, err := NewClient(w.context(), w.qps[0], &w.plan.client)
			require.ErrorContains(t, err, "HELLO is not the first message")
			require.Error(t, <-answer, "the connection has ended")
		})
	})
}

// TestRMA_4_Negotiation: of the suite and the length of operations.
func TestRMA_4_Negotiation(t *testing.T) {
	for name, c := range map[string]struct {
		plan  plan
		suite uint8
		maxOp int
	}{
		"defaults":             {plan{}, 1, 4096},
		"the client demands":   {plan{client: ClientConfig{AES256: true}}, 2, 4096},
		"the server demands":   {plan{server: ServerConfig{AES256: true}}, 2, 4096},
		"Insecure is the last": {plan{client: ClientConfig{Insecure: true}, server: ServerConfig{Insecure: true}}, 1, 4096},
		"without keys":         {plan{plain: true, client: ClientConfig{Insecure: true}, server: ServerConfig{Insecure: true}}, 0, 4096},
		"the smaller MaxOp":    {plan{client: ClientConfig{MaxOp: 65536}, server: ServerConfig{MaxOp: 512}}, 1, 512},
		"that of the client":   {plan{client: ClientConfig{MaxOp: 1000}, server: ServerConfig{MaxOp: 2000}}, 1, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := start(t, c.plan)
				require.Equal(t, c.suite, w.client.Suite())
				require.Equal(t, c.maxOp, w.client.MaxOp())
				h, p := w.opens(), w.portal(1)
				require.NoError(t, does(t, p, Command{Op: Write, Handle: h, Buf: octets(1, c.maxOp)}).Err)
				_, err := p.Post(Command{Op: Write, Handle: h, Buf: octets(1, c.maxOp+1)})
				require.ErrorIs(t, err, errTooLong)
			})
		})
	}
}

// TestKEY_6_WithoutKeysBothSidesHaveToAllowIt: a connection without a suite in common ends with a
// clear error.
func TestKEY_6_WithoutKeysBothSidesHaveToAllowIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newPair(t, plan{plain: true})
		_, err := NewClient(w.context(), w.qps[0], &w.plan.client)
		require.ErrorIs(t, err, ErrNoSuite, "neither allows it")
		require.Equal(t, iwarp.StateRTS, w.qps[0].State(), "and the QP was not touched")
		require.ErrorIs(t, w.server.Serve(w.context(), w.qps[1]), ErrNoSuite)
		<-w.qps[1].Done() // Serve owns it, so a peer without an identity costs nothing
		require.NoError(t, w.plan.server.PD.Close())
	})
	bubble(t, func(t *testing.T) {
		// The server has keys, the client offers none.
		w := newPair(t, plan{})
		w.serve()
		r := newRaw(w)
		r.mine.Offered = 1
		r.sends(r.mine.Append(nil, r.header(0), r.out))
		r.wantEnd(w, "no suite in common")
		w.wantNothingLeft()
	})
}

// TestRMA_37_Suite0NeedsInsecureOnBothSides: and all its tags are zero.
func TestRMA_37_Suite0NeedsInsecureOnBothSides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newPair(t, plan{plain: true, server: ServerConfig{Insecure: true}})
		w.serve()
		r := newRaw(w)
		r.greets()
		r.opens(1, regionID, wire.OpRead)
		require.Equal(t, [3]regionkey.Key{}, r.rep.Keys)
		q := wire.OpenReq{Region: regionID, Instance: r.mine.Instance, Ops: wire.OpRead}
		msg := q.Append(nil, r.header(2), r.out)
		msg[len(msg)-1] = 1
		r.sends(msg)
		r.wantEnd(w, "outer tag")
	})
}

// TestRMA_42_DepthOfThePeerTakesNoMemory: at most as much as the receives of the QP need, whatever a HELLO says.
func TestRMA_42_DepthOfThePeerTakesNoMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newPair(t, plan{})
		w.serve()
		r := newRaw(w)
		r.mine.Depth = math.MaxUint16
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.sends(r.mine.Append(nil, r.header(0), r.out))
		r.wantEnd(w, "see Depths")
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
		w.wantNothingLeft()
	})
}

// TestRMA_47_NothingIsLeftOfAFailedHello: no region, receive, slot, grant or goroutine.
func TestRMA_47_NothingIsLeftOfAFailedHello(t *testing.T) {
	t.Run("the client is too late", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newPair(t, plan{server: ServerConfig{HelloTimeout: 3 * time.Second}})
			begun := time.Now()
			err := w.server.Serve(w.context(), w.qps[1])
			require.ErrorIs(t, err, ErrTimeout)
			require.Less(t, time.Since(begun), 6*time.Second)
			w.wantNothingLeft()
		})
	})
	t.Run("the server is too late", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newPair(t, plan{client: ClientConfig{HelloTimeout: 3 * time.Second}})
			_, err := NewClient(w.context(), w.qps[0], &w.plan.client)
			require.ErrorIs(t, err, ErrTimeout)
			require.NoError(t, w.plan.client.PD.Close())
		})
	})
	t.Run("the context of the client ends", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newPair(t, plan{})
			ctx, cancel := context.WithTimeout(w.context(), time.Second)
			defer cancel()
			_, err := NewClient(ctx, w.qps[0], &w.plan.client)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, w.plan.client.PD.Close())
		})
	})
	t.Run("the context of the server ends", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newPair(t, plan{})
			ctx, cancel := context.WithTimeout(w.context(), time.Second)
			defer cancel()
			_ = w.server.Serve(ctx, w.qps[1])
			w.wantNothingLeft()
		})
	})
	t.Run("the queues are too short", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newPair(t, plan{change: func(client, server *iwarp.QPConfig) { server.RecvDepth = 20 }})
			err := w.server.Serve(w.context(), w.qps[1])
			require.ErrorIs(t, err, iwarp.ErrQueueFull)
			require.ErrorContains(t, err, "see Depths")
			w.wantNothingLeft()
		})
	})
	t.Run("two CQs", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newPair(t, plan{change: func(client, server *iwarp.QPConfig) { server.SendCQ, server.RecvCQ = nil, nil }})
			require.ErrorIs(t, w.server.Serve(w.context(), w.qps[1]), errOneCQ)
		})
	})
}

// TestConnectionThatHasEndedTellsWhy: the error is not that its keys or its queues are wrong.
func TestConnectionThatHasEndedTellsWhy(t *testing.T) {
	for _, plain := range []bool{false, true} {
		ended := func(t *testing.T, end func(*iwarp.QP) error) (serve, client error) {
			w := newPair(t, plan{plain: plain, client: ClientConfig{Insecure: plain}, server: ServerConfig{Insecure: plain}})
			require.NoError(t, end(w.qps[0]))
			<-w.qps[1].Done()
			serve = w.server.Serve(w.context(), w.qps[1])
			w.wantNothingLeft()
			_, client = NewClient(w.context(), w.qps[0], &w.plan.client)
			return serve, client
		}
		bubble(t, func(t *testing.T) {
			serve, client := ended(t, (*iwarp.QP).Close)
			require.NoError(t, serve, "the peer has ended the connection gracefully")
			require.Equal(t, errClosed, client)
		})
		bubble(t, func(t *testing.T) {
			serve, client := ended(t, (*iwarp.QP).Terminate)
			for _, err := range []error{serve, client} {
				require.ErrorAs(t, err, new(*iwarp.TerminateError))
				require.ErrorIs(t, err, net.ErrClosed)
				require.NotErrorIs(t, err, regionkey.ErrNoSecret)
				require.NotContains(t, err.Error(), "Depths")
			}
		})
	}
}

// TestConfigurationsAreChecked: an error names the field.
func TestConfigurationsAreChecked(t *testing.T) {
	_, pd := rnictest.Open(t, nil)
	for field, c := range map[string]ServerConfig{
		"PD":          {},
		"MaxOp":       {PD: pd, MaxOp: 511},
		"Depth":       {PD: pd, Depth: 65536},
		"PullTimeout": {PD: pd, PullTimeout: time.Hour},
		"Guard":       {PD: pd, Guard: time.Millisecond},
		"Guard is 1m": {PD: pd, Guard: time.Minute},
		"Linger":      {PD: pd, Linger: time.Hour},
		"Dispatch":    {PD: pd, Dispatch: [2]time.Duration{0, time.Hour}},
		"ServerConfig.MaxRegions is negative: -1": {PD: pd, MaxRegions: -1},
		"ScratchLimit": {PD: pd, ScratchLimit: -1},
		"ServerConfig.ScratchLimit is 4111, and an operation of MaxOp needs 4112": {PD: pd, ScratchLimit: 4111},
		"Solicitor": {PD: pd, Solicitor: new(Solicitor)},
	} {
		s := NewServer(&c)
		_, err := s.Register(1, NewMemory(nil), nil)
		require.ErrorContains(t, err, field)
		require.ErrorContains(t, s.Serve(t.Context(), nil), field)
	}
	for field, c := range map[string]ClientConfig{
		"PD":        {},
		"MaxOp":     {PD: pd, MaxOp: 65537},
		"Slots":     {PD: pd, MaxSlots: 4097},
		"OpTimeout": {PD: pd, OpTimeout: time.Hour},
		"Dispatch":  {PD: pd, Dispatch: [2]time.Duration{time.Hour, 0}},
		"ClientConfig.HelloTimeout is negative: -1ns": {PD: pd, HelloTimeout: -1},
		"ScratchLimit": {PD: pd, ScratchLimit: -1},
		"ClientConfig.ScratchLimit is 65551, and an operation of MaxOp needs 65552": {PD: pd, MaxOp: 65536, ScratchLimit: 65551},
		"ServerConfig.ScratchLimit is 4112, and an operation of MaxOp needs 4113":   {PD: pd, MaxOp: 4097, Server: NewServer(&ServerConfig{PD: pd, ScratchLimit: 4112})},
		"ServerConfig.PD": {PD: pd, ScratchLimit: 1, Server: NewServer(&ServerConfig{})},
		"Solicitor":       {PD: pd, Solicitor: new(Solicitor)},
	} {
		_, err := NewClient(t.Context(), nil, &c)
		require.ErrorContains(t, err, field)
	}
}

// TestPrepareChecksDepths: other depths would overflow, or be too small.
func TestPrepareChecksDepths(t *testing.T) {
	rnic, _ := rnictest.Open(t, nil)
	for _, c := range [][2]int{{-1, 64}, {64, -1}, {maxDepth + 1, 0}, {0, math.MaxInt/6 + 1}, {0, math.MaxInt}} {
		var cfg iwarp.QPConfig
		require.ErrorContains(t, Prepare(rnic, &cfg, c[0], c[1]), "the depth for Prepare is")
		require.Zero(t, cfg.SendDepth)
		require.Nil(t, cfg.SendCQ)
	}
}

// TestRMA_3_HelloThatIsRefusedWhileTheQPEnds: nothing was agreed, so the messages that follow are ignored.
func TestRMA_3_HelloThatIsRefusedWhileTheQPEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newPair(t, plan{})
		cfg, err := w.plan.client.withDefaults()
		require.NoError(t, err)
		c, err := newConn(w.qps[0], clientSettings(&cfg))
		require.NoError(t, err)
		r := w.raw(w.qps[1], w.plan.server.PD, regionkey.Responder)
		c.enter() // like start, up to the point where the HELLO of this side is posted
		c.timer = time.AfterFunc(time.Hour, c.rings)
		c.armed = c.now.Add(time.Hour)
		c.greet()
		r.sends(r.mine.Append(nil, r.header(0), r.out)) // it chooses no suite
		m := wire.Status{Code: op.RemoteAuth}
		r.sends(m.Append(nil, r.header(1), r.out))
		synctest.Wait()
		require.NoError(t, r.qp.Abort())
		<-c.qp.Done()
		c.leave()
		go c.run()
		<-c.done
		require.Error(t, c.failure())
	})
}
