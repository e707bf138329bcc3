package setup

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

func asks2(p *peer) { p.wants(request(enhancedRequest)) }
func asks1(p *peer) { p.wants(request(plain)) }

func TestDialFallsBackToRevision1(t *testing.T) {
	accepts := func(p *peer) {
		asks1(p)
		p.writes(frame(replyKey, plain))
	}
	for name, first := range map[string]func(*peer){
		"after FIN": asks2, // and closes
		"after RST": func(p *peer) {
			asks2(p)
			_ = p.c.(interface{ Abort() error }).Abort()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newManager(t)
				own, got := local(t)
				var stages []string
				own.Stages = StageTrace{Leave: func(s Stage, err error) {
					if err == nil {
						stages = append(stages, s.String())
					} else {
						stages = append(stages, s.String()+" fails")
					}
				}}
				require.NoError(t, m.Dial(someTime(t), "pipe", peers(t, first, accepts), own))
				require.Equal(t, []string{"dial", "request", "reply fails", "dial", "request", "reply", "confirm"}, stages)
				require.Equal(t, 1, got.prepared, "Prepare is called once")
				require.Equal(t, mpa.Revision1, got.terms.Revision)
				require.Zero(t, m.Pending())
			})
		})
	}
}

func TestDialDoesNotFallBack(t *testing.T) {
	for name, c := range map[string]struct {
		scripts    []func(*peer)
		o          mpa.Options
		noFallback bool
	}{
		"twice":                     {[]func(*peer){asks2, asks1}, mpa.Options{}, false},
		"with NoFallback":           {[]func(*peer){asks2}, mpa.Options{}, true},
		"from revision 1":           {[]func(*peer){asks1}, mpa.Options{Revision: 1}, false},
		"from what amounts to it":   {[]func(*peer){asks1}, mpa.Options{ClientServer: true, FixedDepths: true}, false},
		"after an octet":            {[]func(*peer){func(p *peer) { asks2(p); p.writes([]byte("M")) }}, mpa.Options{}, false},
		"after a malformed Reply":   {[]func(*peer){func(p *peer) { asks2(p); p.writes(make([]byte, 20)) }}, mpa.Options{}, false},
		"after what refuses it all": {[]func(*peer){func(p *peer) { asks2(p); p.writes(frame(replyKey, "60 01 0000")) }}, mpa.Options{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newManager(t)
				own, got := local(t)
				own.MPA, own.NoFallback = c.o, c.noFallback
				err := m.Dial(someTime(t), "pipe", peers(t, c.scripts...), own)
				require.Error(t, err)
				require.NotErrorIs(t, err, errUnsupported)
				require.Nil(t, got.llp)
				require.Zero(t, m.Pending())
			})
		})
	}
}

// TestDialWithoutANetworkSaysSo: in one sentence.
func TestDialWithoutANetworkSaysSo(t *testing.T) {
	own, _ := local(t)
	err := newManager(t).Dial(someTime(t), "", "127.0.0.1:1", own)
	var unknown net.UnknownNetworkError
	require.ErrorAs(t, err, &unknown)
	require.EqualError(t, DialError("", "127.0.0.1:1", err), "iwarp: dial: the network is empty")
}

// TestPartOfAReplyIsNoGuess: a peer that hangs up within its Reply speaks MPA, and not TLS.
func TestPartOfAReplyIsNoGuess(t *testing.T) {
	const part = "the peer closed the connection before it sent all of an MPA Reply"
	for begins, want := range map[string]string{
		"MPA ID":                          part,
		replyKey + "\x10\x02\x00\x04\x00": part,
		"\x15\x03\x03\x00\x02":            "the peer uses TLS: set QPConfig.TLS",
	} {
		synctest.Test(t, func(t *testing.T) {
			own, _ := local(t)
			err := newManager(t).Dial(someTime(t), "pipe", peers(t, func(p *peer) { asks2(p); p.writes([]byte(begins)) }), own)
			require.EqualError(t, err, want, "%q", begins)
		})
	}
	synctest.Test(t, func(t *testing.T) { // a Request of revision 1, which is not repeated
		own, _ := local(t)
		own.MPA = mpa.Options{ClientServer: true, FixedDepths: true}
		err := newManager(t).Dial(someTime(t), "pipe", peers(t, asks1), own)
		require.ErrorContains(t, err, "before it sent an MPA Reply; it may speak another protocol")
	})
}

// TestSecondAttempt: a second attempt requires that the first has not established the connection, and with a Seal that
// Again agrees.
func TestSecondAttempt(t *testing.T) {
	m := newManager(t)
	own, _ := local(t)
	i := newInitiator(m, own)
	i.established = true
	require.False(t, i.another(t.Context(), mpa.ErrNoReply), "the error is that of Establish")
	i.established = false
	require.True(t, i.another(t.Context(), mpa.ErrNoReply))
	require.Equal(t, mpa.Revision1, own.MPA.Revision)

	first, _ := sealedLocal(t, "first")
	second, _ := sealedLocal(t, "second")
	i = newInitiator(m, first)
	require.False(t, i.another(t.Context(), mpa.ErrNoReply), "no Again")
	var answer transport.Sealer
	first.Again = func(_ context.Context, err error) (transport.Sealer, *mpa.Options) {
		require.ErrorIs(t, err, mpa.ErrNoReply)
		return answer, &mpa.Options{Revision: mpa.Revision1}
	}
	require.False(t, i.another(t.Context(), mpa.ErrNoReply))
	answer = second.Seal
	require.True(t, i.another(t.Context(), mpa.ErrNoReply))
	require.Equal(t, second.Seal, first.Seal)
	require.Equal(t, mpa.Revision1, first.MPA.Revision)
}

// TestStagesOfAClientThatFails: Leave gets the error in the stage where the set-up fails.
func TestStagesOfAClientThatFails(t *testing.T) {
	m := newManager(t)
	own, _ := local(t)
	var left []error
	own.Stages.Leave = func(_ Stage, err error) { left = append(left, err) }
	c, peer := net.Pipe()
	require.NoError(t, peer.Close())
	require.Error(t, m.Client(someTime(t), c, own))
	require.NotEmpty(t, left)
	require.Error(t, left[len(left)-1])
}

// TestDialThatHasNotBegunIsNotCounted: the program's Enter refused it.
func TestDialThatHasNotBegunIsNotCounted(t *testing.T) {
	m := newManager(t)
	own, _ := local(t)
	own.Stages.Enter = func(context.Context, Stage) error { return errLimit }
	require.ErrorIs(t, m.Dial(someTime(t), "pipe", "nothing", own), errLimit)
	_, failed := m.Outcomes()
	require.Zero(t, failed)
}

func TestClientCannotFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := transport.Pipe(transport.PipeOptions{})
		go func() {
			asks2(&peer{TB: t, c: b})
			_ = b.Close()
		}()
		own, _ := local(t)
		require.ErrorIs(t, newManager(t).Client(someTime(t), a, own), errUnsupported)
		_, err := a.Write([]byte{1})
		require.ErrorIs(t, err, net.ErrClosed, "the connection is closed")
	})
}

func TestDialHasATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		own, _ := local(t)
		start := time.Now()
		err := newManager(t).Dial(ctx, "pipe", peers(t, func(p *peer) {
			asks2(p)
			for _, b := range []byte(replyKey)[:4] { // one octet at a time
				p.writes([]byte{b})
				time.Sleep(700 * time.Millisecond)
			}
			time.Sleep(time.Second)
			_, err := p.c.Write([]byte{1})
			require.Error(t, err, "the connection is closed")
		}), own)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

// TestRefuseEndsADial: while it waits for the Reply, and before it begins.
func TestRefuseEndsADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		addr := peers(t, func(p *peer) {
			asks2(p)
			synctest.Wait()
			m.Refuse(errClosed)
			p.wantsEnd("of the set-up")
		})
		own, got := local(t)
		require.ErrorIs(t, m.Dial(someTime(t), "pipe", addr, own), errClosed)
		require.Nil(t, got.llp)
		require.Zero(t, m.Pending())

		require.ErrorIs(t, m.Client(someTime(t), conn(t), own), errClosed, "what is new has no chance")
		_, err := m.Server(someTime(t), conn(t), ListenConfig{SetupTimeout: time.Second, ProgressTimeout: time.Second})
		require.ErrorIs(t, err, errClosed)
		_, err = m.Listen(someTime(t), "pipe", "", ListenConfig{MaxHalfOpen: 1})
		require.ErrorIs(t, err, errClosed)
		require.Equal(t, 1, got.prepared, "nor is Prepare called")
	})
}

// TestRefuseEndsADialBeforeTheRequest: while it connects, and in Prepare.
func TestRefuseEndsADialBeforeTheRequest(t *testing.T) {
	for network, addr := range map[string]string{"pipe": "", SCTPUDP: "127.0.0.1:9"} {
		t.Run(network, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newManager(t)
				m.cfg.ListenPacket = func(context.Context, string, string) (net.PacketConn, error) {
					return &silentConn{closed: make(chan struct{})}, nil
				}
				m.clients = m.sessionClients()
				if network == "pipe" {
					addr = peers(t, func(p *peer) { p.wantsEnd("of the set-up") })
				}
				own, got := local(t)
				own.Prepare = func(ctx context.Context) error {
					<-ctx.Done()
					return ctx.Err()
				}
				start := time.Now()
				time.AfterFunc(time.Second, func() { m.Refuse(errClosed) })
				require.ErrorIs(t, m.Dial(someTime(t), network, addr, own), errClosed)
				require.Equal(t, time.Second, time.Since(start))
				require.Nil(t, got.llp)
				require.Zero(t, m.Pending())
			})
		})
	}
}

// TestRefuseEndsAnAcceptInPrepare: although the initiator still waits.
func TestRefuseEndsAnAcceptInPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		l := listens(t, m, ListenConfig{})
		p := calls(t, l, request(plain))
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		own, got := local(t)
		own.Prepare = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		start := time.Now()
		time.AfterFunc(time.Second, func() { m.Refuse(errClosed) })
		require.ErrorIs(t, q.Accept(someTime(t), own), errClosed)
		require.Equal(t, time.Second, time.Since(start))
		p.wants(frame(replyKey, "60 01 0000"))
		p.wantsEnd("of the set-up")
		require.Nil(t, got.llp)
		require.Zero(t, m.Pending())
	})
}

// A silentConn is a socket on which nothing arrives.
type silentConn struct {
	net.PacketConn
	once   sync.Once
	closed chan struct{}
}

func (c *silentConn) ReadFrom([]byte) (int, net.Addr, error) {
	<-c.closed
	return 0, nil, net.ErrClosed
}

func (c *silentConn) WriteTo(p []byte, _ net.Addr) (int, error) { return len(p), nil }

func (c *silentConn) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1000}
}

func (c *silentConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// conn returns one end of a connection whose other end sends nothing.
func conn(t *testing.T) net.Conn {
	a, b := transport.Pipe(transport.PipeOptions{})
	t.Cleanup(func() { _ = b.Close() })
	return a
}

// TestRefusedOnceMore: a later cause replaces the earlier one, but none replaces Config.Closed.
func TestRefusedOnceMore(t *testing.T) {
	m := newManager(t)
	first := errors.New("shutting down")
	m.Refuse(first)
	require.ErrorIs(t, m.refusal(), first)
	m.Refuse(errClosed)
	m.Refuse(first)
	require.ErrorIs(t, m.refusal(), errClosed)
}

// TestRefuseAfterTheReply: when both ends have spoken, Establish learns of the refusal and tells the peer. Wait waits
// for that.
func TestRefuseAfterTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		own, _ := local(t)
		told := errors.New("the peer was told")
		own.Establish = func(ctx context.Context, llp transport.LLP, _ *mpa.Terms) error {
			m.Refuse(errors.New("shutting down"))
			require.ErrorIs(t, context.Cause(ctx), errClosed)
			waited := make(chan struct{})
			go func() {
				m.Wait()
				close(waited)
			}()
			synctest.Wait()
			select {
			case <-waited:
				t.Error("Wait has not waited")
			default:
			}
			llp.Abort(nil)
			return told
		}
		err := m.Dial(someTime(t), "pipe", peers(t, func(p *peer) {
			asks2(p)
			p.writes(frame(replyKey, "50 02 0004 8010 8010"))
		}), own)
		require.Equal(t, told, err, "the error of Establish is left as it is")
		m.Wait()
	})
}

func TestErrorOfPrepareEndsTheSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		own, _ := local(t)
		oops := errors.New("oops")
		own.Prepare = func(context.Context) error { return oops }
		err := m.Dial(someTime(t), "pipe", peers(t, func(p *peer) { p.wantsEnd("no Request goes out") }), own)
		require.EqualError(t, err, "setup: oops")
		require.ErrorIs(t, err, oops)

		l := listens(t, m, ListenConfig{})
		p := calls(t, l, request(plain))
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		require.ErrorIs(t, q.Accept(someTime(t), own), oops)
		p.wants(frame(replyKey, "60 01 0000"))
		p.wantsEnd("the connection is closed")
		require.Zero(t, m.Pending())
	})
}

func TestRejectedConnection(t *testing.T) {
	for _, dials := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := newManager(t)
			own, got := local(t)
			refuses := func(p *peer) {
				asks2(p)
				p.writes(frame(replyKey, "70 02 0006 8003 8004 6e6f"))
			}
			var err error
			if dials {
				err = m.Dial(someTime(t), "pipe", peers(t, func(p *peer) {
					refuses(p)
					p.wantsEnd("Dial closes what is rejected")
				}), own)
			} else {
				a, b := transport.Pipe(transport.PipeOptions{})
				defer a.Close()
				defer b.Close()
				p := &peer{TB: t, c: b}
				go refuses(p)
				err = m.Client(someTime(t), a, own)
				go func() { _, _ = a.Write([]byte("still here")) }()
				p.wants([]byte("still here"))
			}
			var rej *RejectError
			require.ErrorAs(t, err, &rej)
			require.Equal(t, &RejectError{PrivateData: []byte("no"), IRD: 3, ORD: 4}, rej)
			require.Nil(t, got.llp)
		})
	}
}

// asksForASession has another Manager ask m for a session, which waits as q.
func asksForASession(t *testing.T) (m *Manager, q *Request, dialed <-chan error) {
	t.Helper()
	m, other := newManager(t), newManager(t)
	l, err := m.Listen(someTime(t), SCTPUDP, "127.0.0.1:0", ListenConfig{SetupTimeout: 5 * time.Second, MaxHalfOpen: 1})
	require.NoError(t, err)
	asks, _ := local(t)
	asks.NoFallback = true
	ends := make(chan error, 1)
	go func() { ends <- other.Dial(someTime(t), SCTPUDP, l.Addr().String(), asks) }()
	q, err = l.Accept(someTime(t))
	require.NoError(t, err)
	return m, q, ends
}

// TestRefuseEndsTheSessionsThatWait: Refuse itself sends the refusals, before Close ends the association that carries
// them.
func TestRefuseEndsTheSessionsThatWait(t *testing.T) {
	m, _, dialed := asksForASession(t)
	m.cfg.Start = func(func()) { t.Error("a goroutine that Close does not wait for") }
	m.Refuse(errClosed)
	require.ErrorIs(t, <-dialed, sctp.ErrRefused)
}

// TestRefuseEndsTheSessionsThatAreBeingAccepted: here, too, Refuse itself sends the refusal, and does not wait for the
// program's Prepare.
func TestRefuseEndsTheSessionsThatAreBeingAccepted(t *testing.T) {
	m, q, dialed := asksForASession(t)
	accepted := make(chan error, 1)
	answers, got := local(t)
	prepares, resume := make(chan struct{}), make(chan struct{})
	answers.Prepare = func(context.Context) error {
		close(prepares)
		<-resume
		return nil
	}
	go func() { accepted <- q.Accept(someTime(t), answers) }()
	<-prepares
	m.Refuse(errClosed)
	m.Wait()
	m.Close()
	require.ErrorIs(t, <-dialed, sctp.ErrRefused)
	close(resume)
	require.Error(t, <-accepted)
	require.Nil(t, got.llp)
}

// TestRefuseBesideAnAccept: as Accept of a session begins, and between Prepare and the answer. The initiator learns of
// the refusal, not only of the end of its association.
func TestRefuseBesideAnAccept(t *testing.T) {
	for at, hook := range map[string]func(c *hookedContext, f func()){
		"before Prepare":    func(c *hookedContext, f func()) { c.done = f },
		"before the answer": func(c *hookedContext, f func()) { c.deadline = f },
	} {
		t.Run(at, func(t *testing.T) {
			m, q, dialed := asksForASession(t)
			ctx := &hookedContext{Context: someTime(t)}
			hook(ctx, sync.OnceFunc(func() {
				m.Refuse(errClosed)
				m.Wait()
				m.Close()
			}))
			answers, got := local(t)
			require.ErrorIs(t, q.Accept(ctx, answers), errClosed)
			require.ErrorIs(t, <-dialed, sctp.ErrRefused)
			require.Nil(t, got.llp)
			require.Zero(t, m.Pending())
		})
	}
}

// TestRefuseEndsTheExchangeBeforeTheOffer: a caller that finds the offer closed then knows why.
func TestRefuseEndsTheExchangeBeforeTheOffer(t *testing.T) {
	m := newManager(t)
	s := &asksBySCTP{}
	r, err := sctp.ReadRequest(someTime(t), s)
	require.NoError(t, err)
	ctx, done, err := m.exchange(someTime(t), sessionOffer{r, m})
	require.NoError(t, err)
	defer done()
	s.sends = func() { require.ErrorIs(t, context.Cause(ctx), errClosed) }
	m.Refuse(errClosed)
	require.Equal(t, 1, s.sent)
}

// TestRefuseAfterAnExchangeWithoutAnAnswer: for instance, the context of Accept has ended. The session is refused.
func TestRefuseAfterAnExchangeWithoutAnAnswer(t *testing.T) {
	m := newManager(t)
	s := &asksBySCTP{sends: func() {}}
	r, err := sctp.ReadRequest(someTime(t), s)
	require.NoError(t, err)
	_, done, err := m.exchange(someTime(t), sessionOffer{r, m})
	require.NoError(t, err)
	done()
	m.Refuse(errClosed)
	require.Equal(t, 1, s.sent)
}

// An asksBySCTP is a stream whose peer asks for a session.
type asksBySCTP struct {
	sctp.Stream
	sends func()
	sent  int
}

func (s *asksBySCTP) Receive(p []byte) (int, uint32, error) {
	return copy(p, []byte{0, 0, 0, byte(sctp.Initiate)}), sctp.PPIDControl, nil
}

func (s *asksBySCTP) Send(uint32, []byte, bool) error {
	s.sent++
	s.sends()
	return nil
}

func (s *asksBySCTP) Wake()        {}
func (s *asksBySCTP) Release(bool) {}

// A hookedContext calls functions when its methods are called.
type hookedContext struct {
	context.Context
	done, deadline func() // nil: none
}

func (c *hookedContext) Done() <-chan struct{} {
	if c.done != nil {
		c.done()
	}
	return c.Context.Done()
}

func (c *hookedContext) Deadline() (time.Time, bool) {
	if c.deadline != nil {
		c.deadline()
	}
	return c.Context.Deadline()
}
