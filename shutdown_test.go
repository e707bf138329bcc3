package iwarp_test

import (
	"context"
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
)

// lastMessages makes a client send 50 messages and end, before the server receives the first.
// It returns how many have arrived.
func lastMessages(t *testing.T, pc pairConfig, end func(*iwarp.RNIC) error) (arrived int, err error) {
	client, server := connect(t, pc)
	_, src := client.register(1000, 0, nil)
	_, dst := server.register(1000, stag.LocalWrite, nil)
	ctx := testContext(t)
	for range 50 {
		require.NoError(t, client.qp.Send(ctx, src.Slice(0, 1000)))
	}
	ended := make(chan error, 1)
	go func() { ended <- end(client.rnic) }()
	if pc.network == "pipe" {
		synctest.Wait()
	}
	for {
		if _, err := server.qp.Recv(ctx, dst.Slice(0, 1000)); err != nil {
			return arrived, <-ended
		}
		arrived++
	}
}

// TestShutdownDeliversWhatWasSent: unlike Close.
func TestShutdownDeliversWhatWasSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		arrived, err := lastMessages(t, pairConfig{network: "pipe"}, func(r *iwarp.RNIC) error { return r.Shutdown(testContext(t)) })
		require.NoError(t, err)
		require.Equal(t, 50, arrived)
	})
	bubble(t, func(t *testing.T) {
		arrived, err := lastMessages(t, pairConfig{network: "pipe"}, (*iwarp.RNIC).Close)
		require.NoError(t, err)
		require.Less(t, arrived, 50, "what Shutdown is there for")
	})
	cert, roots := selfsigned.New("iwarp.test")
	for name, pc := range map[string]pairConfig{
		"tcp":      {network: "tcp"},
		"sctp+udp": {network: "sctp+udp"},
		"tls": {
			client: iwarp.QPConfig{TLS: &tls.Config{RootCAs: roots, ServerName: "iwarp.test"}},
			listen: &iwarp.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}},
		},
	} {
		arrived, err := lastMessages(t, pc, func(r *iwarp.RNIC) error { return r.Shutdown(testContext(t)) })
		require.NoError(t, err, name)
		require.Equal(t, 50, arrived, "over real sockets, too: %s", name)
	}
}

// TestShutdownEndsAllAtOnce: QPs whose peers end, and the others within ctx.
func TestShutdownEndsAllAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		events := s.rnic.Events()
		var good, bad []*wiretest.Peer
		var bads []*iwarp.QP
		for range 3 {
			p, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
			require.NoError(t, qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("last")}))
			good = append(good, p)
		}
		for range 2 { // these never end their half
			p, qp := responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
			bad, bads = append(bad, p), append(bads, qp)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
		defer cancel()
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- s.rnic.Shutdown(ctx) }()
		for _, p := range good {
			require.Equal(t, wiretest.Send(1, 0, "last"), p.Segment())
		}
		for _, p := range append(good, bad...) {
			p.WantEOF("each gets its FIN without waiting for another")
		}
		require.Zero(t, time.Since(start))
		for _, p := range good {
			p.Close()
		}
		err := <-done
		require.Equal(t, 7*time.Second, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "iwarp: shutdown: of 5 queue pairs 2 were aborted: context deadline exceeded")
		for _, qp := range bads {
			require.ErrorIs(t, qp.Err(), context.DeadlineExceeded)
			require.ErrorIs(t, qp.Err(), net.ErrClosed)
		}
		kinds := make(map[iwarp.EventKind]int)
		for e := range events { // the channel is closed
			kinds[e.Kind]++
		}
		require.Equal(t, map[iwarp.EventKind]int{iwarp.EventClosed: 3, iwarp.EventAborted: 2}, kinds)
		require.NoError(t, s.rnic.Shutdown(ctx), "again: nothing is left")
	})
}

// TestShutdownAfterItsTime: all QPs count as aborted, even a QP without outstanding work, whose half could be ended.
func TestShutdownAfterItsTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		for range 50 {
			_, s.qp = responder(t, s.rnic, "pipe", &iwarp.QPConfig{PD: s.pd})
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.EqualError(t, s.rnic.Shutdown(ctx), "iwarp: shutdown: of 50 queue pairs 50 were aborted: context canceled")
		require.EqualError(t, s.qp.Send(ctx), s.qp.Err().Error(), "the end of the QP, not a wait, has failed it")
	})
}

// TestShutdownWaitsForWorkUnderWay: it waits for work of this side, and for RDMA Reads of the peer.
func TestShutdownWaitsForWorkUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		copy(k.mem[16:], "peer's")
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: k.at(0, 4), Remote: remote})
		k.p.Segment()
		done := make(chan error, 1)
		go func() { done <- k.rnic.Shutdown(testContext(t)) }()
		synctest.Wait()
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), net.ErrClosed)
		require.ErrorIs(t, k.qp.PostRecv(iwarp.RecvWR{}), net.ErrClosed)
		require.ErrorIs(t, k.qp.Send(testContext(t)), net.ErrClosed)
		k.p.Send(wiretest.ReadRequest(1, 0x77, 0, 6, k.mr.STag(), 16))
		require.Equal(t, wiretest.ReadResponse(0xc1, 0x77, 0, "peer's"), k.p.Segment())
		require.Empty(t, done)
		k.answersRead(0, "data")
		k.p.WantEOF("the FIN is after everything")
		k.p.Close()
		require.NoError(t, <-done)
		require.Equal(t, []iwarp.Status{iwarp.StatusSuccess}, statuses(k.completes(k.cq, 1)))
		require.Equal(t, "data", string(k.mem[:4]))
	})
}

func TestShutdownOfAPeerThatDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		for id := range uint64(100) {
			k.posts(iwarp.SendWR{ID: id, Op: iwarp.OpRDMAWrite, Local: k.at(0, talkMem), Remote: remote})
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		start := time.Now()
		require.EqualError(t, k.rnic.Shutdown(ctx), "iwarp: shutdown: of 1 queue pairs 1 were aborted: context deadline exceeded")
		require.Equal(t, time.Minute, time.Since(start), "not CloseTimeout, but ctx")
	})
}

// TestShutdownWithWindows: unlike Close, Shutdown does not refuse, and the windows end with their QP.
func TestShutdownWithWindows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		owner, user := connect(t, pairConfig{network: "pipe"})
		_, mr := owner.register(8, lendable, nil)
		mw := owner.lends(owner.qp, mr, 0, 8, stag.RemoteRead, 0)
		require.ErrorIs(t, owner.qp.Close(), iwarp.ErrWindowBound)
		require.NoError(t, owner.rnic.Shutdown(testContext(t)))
		require.False(t, mw.Valid())
		<-user.qp.Done()
		require.NoError(t, user.qp.Err())
	})
}

// TestShutdownOfWhatIsInSetUp: a set-up is ended at once, on either side.
func TestShutdownOfWhatIsInSetUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, other := newSide(t, nil), newSide(t, nil)
		ctx := testContext(t)
		l, err := s.rnic.Listen(ctx, "pipe", "", nil)
		require.NoError(t, err)
		asks := make(chan error, 3)
		for range 2 {
			go func() {
				_, err := other.rnic.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: other.pd, MPA: iwarp.MPAOptions{NoFallback: true}})
				asks <- err
			}()
		}
		cr, err := l.Accept(ctx) // the other request waits in the listener
		require.NoError(t, err)
		silent := wiretest.Serve(t, func(p *wiretest.Peer) {
			p.Read(24)
			p.WantEOF("the connection of the Dial is ended")
		})
		go func() {
			_, err := s.rnic.Dial(ctx, "pipe", silent, &iwarp.QPConfig{PD: s.pd})
			asks <- err
		}()
		synctest.Wait()
		start := time.Now()
		require.NoError(t, s.rnic.Shutdown(ctx))
		require.Zero(t, time.Since(start), "no request was accepted yet")
		for range 3 {
			require.Error(t, <-asks)
		}
		for what, f := range map[string]func() error{
			"the request that Accept had returned": func() error { _, err := cr.Accept(ctx, &iwarp.QPConfig{PD: s.pd}); return err },
			"Accept of a Listener":                 func() error { _, err := l.Accept(ctx); return err },
			"Listen":                               func() error { _, err := s.rnic.Listen(ctx, "pipe", "", nil); return err },
			"Dial": func() error {
				_, err := s.rnic.Dial(ctx, "pipe", silent, &iwarp.QPConfig{PD: s.pd})
				return err
			},
			"Client": func() error {
				c, _ := net.Pipe()
				_, err := s.rnic.Client(ctx, c, &iwarp.QPConfig{PD: s.pd})
				return err
			},
			"Server": func() error {
				c, _ := net.Pipe()
				_, err := s.rnic.Server(ctx, c, nil)
				return err
			},
		} {
			require.ErrorIs(t, f(), net.ErrClosed, what)
		}
	})
}

// TestNewConnectionsAreRefusedDuringShutdown: while an old connection still exists.
func TestNewConnectionsAreRefusedDuringShutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		done := make(chan error, 1)
		go func() { done <- k.rnic.Shutdown(testContext(t)) }()
		synctest.Wait()
		_, err := k.rnic.Dial(testContext(t), "pipe", "unused", &iwarp.QPConfig{PD: k.pd})
		require.ErrorIs(t, err, iwarp.ErrShutdown)
		_, err = k.rnic.Listen(testContext(t), "pipe", "", nil)
		require.ErrorIs(t, err, iwarp.ErrShutdown)
		require.NoError(t, k.rnic.Close(), "Close ends what Shutdown waits for")
		err = <-done
		require.ErrorIs(t, err, iwarp.ErrAborted)
		require.ErrorContains(t, err, "iwarp: shutdown: of 1 queue pairs 1 ended with an error: ")
	})
}

// TestShutdownTellsOfErrors: a QP that does not end gracefully is an error.
func TestShutdownTellsOfErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		done := make(chan error, 1)
		go func() { done <- k.rnic.Shutdown(testContext(t)) }()
		k.p.WantEOF("the FIN")
		k.p.Send(wiretest.Send(1, 0, "one more"))
		k.p.Close()
		require.ErrorIs(t, <-done, iwarp.ErrBadClose)
	})
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, qp := responder(t, k.rnic, "pipe", &iwarp.QPConfig{PD: k.pd})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- k.rnic.Shutdown(ctx) }()
		k.p.WantEOF("the FIN")
		k.p.Send(wiretest.Send(1, 0, "one more"))
		k.p.Close()
		<-k.qp.Done()
		cancel()
		err := <-done
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, iwarp.ErrBadClose)
		require.ErrorContains(t, err, "of 2 queue pairs 1 were aborted")
		require.ErrorIs(t, qp.Err(), context.Canceled)
	})
}

// TestShutdownOfNothing: a call that need not wait succeeds even if its context has ended.
func TestShutdownOfNothing(t *testing.T) {
	s := newSide(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, s.rnic.Shutdown(ctx))
	require.NoError(t, s.rnic.Shutdown(ctx))
	require.NoError(t, s.rnic.Close())
	_, err := s.rnic.AllocPD()
	require.ErrorIs(t, err, iwarp.ErrRNICClosed)
}

// TestVERBS_47_CloseAfterAMessageWithoutAReceive: no receive can be posted any more, so the end does not wait for one.
// The peer learns that its message and the Write after it are lost.
func TestVERBS_47_CloseAfterAMessageWithoutAReceive(t *testing.T) {
	for name, ends := range map[string]func(k *talk) error{
		"Close":    func(k *talk) error { return k.qp.Close() },
		"Shutdown": func(k *talk) error { return k.rnic.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				k.p.Send(wiretest.Send(1, 0, "hi"))
				k.p.Send(wiretest.Write(k.mr.STag(), 0, "lost"))
				synctest.Wait()
				start := time.Now()
				ended := make(chan error, 1)
				go func() { ended <- ends(k) }()
				k.wantTerminate("there is no buffer for the message", 0x1202)
				require.Zero(t, time.Since(start))
				require.ErrorIs(t, k.qp.Err(), iwarp.ErrNoReceive)
				require.Zero(t, k.mem[0])
				if err := <-ended; name == "Close" {
					require.NoError(t, err, "the QP has ended")
				} else {
					require.ErrorIs(t, err, iwarp.ErrNoReceive)
				}
			})
		})
	}
}
