package cm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// A scene is a vault, a client that reaches it through a relay, and the frames that have passed.
type scene struct {
	*vault
	network string
	client  *site
	relayed sync.WaitGroup
}

// newScene makes a scene on the pipe.
func newScene(t *testing.T, change func(client, server *cm.Config)) *scene {
	t.Helper()
	return newSceneOver(t, "pipe", change)
}

func newSceneOver(t *testing.T, network string, change func(client, server *cm.Config)) *scene {
	t.Helper()
	ca, sa := authsOf(t, func(client, server *cm.Config) {
		server.Limits = unlimited
		if change != nil {
			change(client, server)
		}
	})
	v := &vault{host: newHost(t, sa, network, nil, nil), auth: sa, client: ca}
	return &scene{vault: v, network: network, client: newSite(t, ca, nil)}
}

// dials sets up a connection through a relay, and waits until the relay has ended if that fails.
func (s *scene) dials(m *relay) (*iwarp.QP, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	qp, err := s.client.rnic.Client(ctx, m.between(s, &s.relayed, s.network, s.addr), s.client.asks())
	if err != nil {
		s.relayed.Wait()
	}
	return qp, err
}

// wantNone requires that no connection has resulted from an attack.
func (s *scene) wantNone(expectation string) {
	s.Helper()
	synctest.Wait()
	for len(s.outcomes) > 0 {
		require.ErrorIs(s, (<-s.outcomes).err, iwarp.ErrAuth, expectation)
	}
	require.Zero(s, s.auth.Stats().Accepted, expectation)
	require.Zero(s, s.auth.Stats().HalfOpen, expectation)
	s.wantQuiet(expectation)
}

// settles waits until the host has ended everything that it has begun.
func (s *scene) settles() {
	s.Helper()
	require.Eventually(s, func() bool {
		return s.auth.Stats().HalfOpen == 0 && s.begun.Load() == s.ended.Load()
	}, wiretest.Patience, 100*time.Microsecond)
}

// wantEnded removes the host's part of a set-up whose Reply the client did not accept. In mode A it
// is a connection, which the client has ended.
func (s *scene) wantEnded(m cm.Mode, expectation string) {
	s.Helper()
	o := s.next()
	if m == cm.ModeB || o.err != nil {
		require.Error(s, o.err, expectation)
		require.True(s, m == cm.ModeA || errors.Is(o.err, iwarp.ErrAuth), expectation)
		return
	}
	<-o.qp.Done()
	<-s.rnic.Events()
}

// connects requires that an honest set-up through the relay succeeds, and returns its frames.
func (s *scene) connects() (request, reply, first []byte) {
	s.Helper()
	keep := func(to *[]byte) func([]byte) []byte {
		return func(b []byte) []byte { *to = bytes.Clone(b); return b }
	}
	qp, err := s.dials(&relay{request: keep(&request), reply: keep(&reply), first: keep(&first)})
	require.NoError(s, err)
	o := s.next()
	require.NoError(s, o.err)
	require.Equal(s, export(s, qp), export(s, o.qp))
	require.NoError(s, qp.Close())
	require.NoError(s, o.qp.Close())
	s.relayed.Wait()
	<-s.rnic.Events()
	return request, reply, first
}

// bits returns the bits of a frame that a test flips; with -short, or the race detector, not all of them.
func bits(frame []byte) (all []int) {
	step := 1
	if testing.Short() || raceorder.Enabled {
		step = 7
	}
	for bit := 0; bit < 8*len(frame); bit += step {
		all = append(all, bit)
	}
	return all
}

func flip(bit int) func([]byte) []byte {
	return func(b []byte) []byte {
		b = bytes.Clone(b)
		b[bit/8] ^= 1 << (bit % 8)
		return b
	}
}

// TestCM_6_7_8_AnyBitOnTheWire: whichever bit is flipped, no connection results.
func TestCM_6_7_8_AnyBitOnTheWire(t *testing.T) {
	eachKind(t, func(t *testing.T, m cm.Mode, suite cm.Suite) {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, func(client, _ *cm.Config) { client.Mode, client.Suite = m, suite })
			request, reply, first := s.connects()
			accepted := s.auth.Stats().Accepted
			for _, bit := range bits(request) {
				_, err := s.dials(&relay{request: flip(bit)})
				require.Error(t, err, "bit %d of the Request", bit)
				require.Empty(t, s.outcomes, "bit %d of the Request", bit)
			}
			for _, bit := range bits(reply) {
				r := &relay{reply: flip(bit)}
				_, err := s.dials(r)
				require.Error(t, err, "bit %d of the Reply", bit)
				require.Zero(t, r.sent.Load(), "the client sends nothing after bit %d of the Reply", bit)
				s.wantEnded(m, "a bit of the Reply")
			}
			if m == cm.ModeA {
				s.wantQuiet("after turned bits")
				return
			}
			const header = 18
			for _, bit := range bits(first[header:]) {
				qp, err := s.dials(&relay{first: flip(8*header + bit)})
				require.NoError(t, err)
				<-qp.Done()
				require.ErrorIs(t, qp.Err(), iwarp.ErrAuth, "bit %d of the first message", bit)
				require.ErrorIs(t, s.next().err, iwarp.ErrAuth, "bit %d of the first message", bit)
				<-s.client.rnic.Events()
			}
			require.Equal(t, accepted, s.auth.Stats().Accepted)
			s.relayed.Wait()
			s.wantQuiet("after turned bits")
		})
	})
}

// TestCM_34_RepliesOfOtherSetUps: the client refuses them, and sends nothing.
func TestCM_34_RepliesOfOtherSetUps(t *testing.T) {
	eachKind(t, func(t *testing.T, m cm.Mode, suite cm.Suite) {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, func(client, _ *cm.Config) { client.Mode, client.Suite = m, suite })
			request, old, _ := s.connects()
			reflected := append([]byte(wiretest.ReplyKey), request[len(wiretest.ReplyKey):]...)
			for name, change := range map[string]func([]byte) []byte{
				"an old Reply":         func([]byte) []byte { return old },
				"the Request itself":   func([]byte) []byte { return request },
				"the Request, renamed": func([]byte) []byte { return reflected },
				"the head of an old Reply": func(b []byte) []byte {
					return append(bytes.Clone(old[:64]), b[64:]...)
				},
				"the tail of an old Reply": func(b []byte) []byte {
					return append(bytes.Clone(b[:64]), old[64:]...)
				},
				"no block": func(b []byte) []byte {
					b = bytes.Clone(b[:frameOff])
					binary.BigEndian.PutUint16(b[startSize-2:], 4)
					return b
				},
				"half of it": func(b []byte) []byte { return b[:len(b)/2] },
				"nothing":    func([]byte) []byte { return nil },
			} {
				r := &relay{reply: change}
				_, err := s.dials(r)
				require.Error(t, err, name)
				require.Zero(t, r.sent.Load(), "%s: the client sends nothing", name)
				s.wantEnded(m, name)
			}
			s.relayed.Wait()
			s.wantQuiet("after Replies of others")
		})
	})
}

// TestCM_21_FirstMessagesOfOtherSetUps: replayed, of another connection, of another kind, none.
func TestCM_21_FirstMessagesOfOtherSetUps(t *testing.T) {
	for _, suite := range []cm.Suite{cm.SuiteHMAC, cm.SuiteX25519} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, func(client, _ *cm.Config) { client.Suite = suite })
			request, _, first := s.connects()
			accepted := s.auth.Stats().Accepted
			for range 3 { // the whole of an old set-up, replayed
				p := dialRaw(t, s.addr)
				p.Write(request)
				frameFrom(p)
				p.Send(first)
				p.WantTerminate("an old first message", 0x0207)
				p.Close()
				require.ErrorIs(t, s.next().err, iwarp.ErrAuth)
			}
			for _, message := range [][]byte{nil, request[frameOff:], first[18 : 18+39]} {
				i := quarantined(t, s.vault.client, s.addr)
				i.Send(wiretest.Send(1, 0, string(message)))
				i.WantTerminate("another first message", 0x0207)
				i.Close()
				require.ErrorIs(t, s.next().err, iwarp.ErrAuth)
			}
			a, b := quarantined(t, s.vault.client, s.addr), quarantined(t, s.vault.client, s.addr)
			for _, crossed := range [][2]*intruder{{a, b}, {b, a}} {
				crossed[0].Send(wiretest.Send(1, 0, string(crossed[1].first())))
				crossed[0].WantTerminate("that of another connection", 0x0207)
				crossed[0].Close()
				require.ErrorIs(t, s.next().err, iwarp.ErrAuth)
			}
			require.Equal(t, accepted, s.auth.Stats().Accepted)
			s.connects()
		})
	}
}

// TestCM_2_6_RequestsThatAreBent: spliced, cut, downgraded, out of order, of other kinds.
func TestCM_2_6_RequestsThatAreBent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(client, server *cm.Config) {
			client.Suite, server.Suite, server.MinSuite = cm.SuiteX25519, cm.SuiteX25519, cm.SuiteX25519
		})
		asked := func() []byte { return requestOf(t, initiates(t, s.vault.client), "hello") }
		one, other := asked(), asked()
		bend := func(change func(b []byte)) []byte {
			b := bytes.Clone(one)
			change(b)
			return b
		}
		frames := map[string][]byte{
			"revision 1":        bend(func(b []byte) { b[17] = 1 }),
			"mode A":            bend(func(b []byte) { b[frameOff+6] = 0 }),
			"a weaker suite":    bend(func(b []byte) { b[frameOff+5] = 1 }),
			"another version":   bend(func(b []byte) { b[frameOff+4] = 2 }),
			"another client":    bend(func(b []byte) { b[frameOff+16]++ }),
			"another type":      bend(func(b []byte) { b[frameOff+7] = 2 }),
			"a longer appLen":   bend(func(b []byte) { b[frameOff+60] = 0xff }),
			"a Reply's key":     bend(func(b []byte) { copy(b, wiretest.ReplyKey) }),
			"no block":          bend(func(b []byte) { binary.BigEndian.PutUint16(b[18:], 4) })[:frameOff],
			"and more behind":   append(bytes.Clone(one), 0),
			"a first message":   append(bytes.Clone(one), wiretest.FPDU(wiretest.Send(1, 0, "early"))...),
			"a public key of 0": bend(func(b []byte) { clear(b[frameOff+64 : frameOff+96]) }),
		}
		for at := 8; at < len(one)-8; at += 24 {
			frames["spliced at "+string(rune('A'+at/24))] = append(bytes.Clone(one[:at]), other[at:]...)
		}
		delete(frames, "spliced at A") // the part before the nonce is the same
		for name, frame := range frames {
			if bytes.Equal(frame, one) || bytes.Equal(frame, other) {
				continue
			}
			p := dialRaw(t, s.addr)
			p.Write(frame)
			if b, err := readFrame(p.Conn); err == nil && len(frame) == len(one) { // data after it may be seen later
				require.NotZero(t, b[16]&0x20, "%s: a Reply that rejects", name)
			}
			p.Close()
		}
		synctest.Wait()
		time.Sleep(time.Minute) // virtual time: all timers have run out
		s.wantNone("bent Requests")
		s.connects()
	})
}

// TestCM_27_30_31_ReplayedRequestsOfModeA: they are refused within the window, after it, and after
// a restart of the server.
func TestCM_27_30_31_ReplayedRequestsOfModeA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := func(client, server *cm.Config) { client.Mode = cm.ModeA }
		s := newScene(t, config)
		request, _, _ := s.connects()
		refused := func(h *host, want cm.Code) {
			t.Helper()
			p := dialRaw(t, h.addr)
			p.Write(request)
			b := frameFrom(p)
			require.Equal(t, []byte{0, 4, byte(want)}, append([]byte{b[frameOff+5]}, b[frameOff+7:frameOff+9]...))
			p.WantClosed("a refused connection ends")
			require.Empty(t, h.outcomes)
		}
		for range 100 {
			refused(s.host, cm.CodeRefused)
		}
		require.Equal(t, uint64(100), s.auth.Stats().Refused[cm.ReasonReplay])
		time.Sleep(31 * time.Second)
		refused(s.host, cm.CodeRefused)
		require.Equal(t, uint64(1), s.auth.Stats().Refused[cm.ReasonStale])

		request, _, _ = s.connects()
		_, sa := authsOf(t, func(client, server *cm.Config) { config(client, server); server.Now = time.Now })
		restarted := newHost(t, sa, "pipe", nil, nil)
		for range 30 {
			refused(restarted, cm.CodeTryModeB)
			time.Sleep(2 * time.Second)
		}
		refused(restarted, cm.CodeRefused)
		require.Equal(t, uint64(30), sa.Stats().Refused[cm.ReasonBlackout])
		require.Equal(t, uint64(1), sa.Stats().Refused[cm.ReasonStale])
	})
}

// TestCM_32_33_ForgedRefusals: at worst the client tries once more, in mode B, and then gives up.
func TestCM_32_33_ForgedRefusals(t *testing.T) {
	for _, m := range []cm.Mode{cm.ModeA, cm.ModeB} {
		for code := range byte(8) {
			for _, flags := range []byte{0, 0x80} {
				synctest.Test(t, func(t *testing.T) {
					ca, _ := authsOf(t, func(client, _ *cm.Config) { client.Mode, client.Suite = m, cm.SuiteX25519 })
					var requests [][]byte
					forge := func(p *wiretest.Peer) {
						requests = append(requests, frameFrom(p))
						block := append([]byte("SCM2\x01\x00"), flags, 4, code)
						block = append(block, make([]byte, 11+int(flags)/4)...)
						p.Write(append(startOf("Rep", 0x70, len(block)), block...))
					}
					most := 1
					if m == cm.ModeA && code == byte(cm.CodeTryModeB) && flags == 0 {
						most = 2
					}
					scripts := []func(*wiretest.Peer){forge, forge}[:most] // one more connection fails the test
					c := newSite(t, ca, nil)
					_, err := c.rnic.Dial(t.Context(), "pipe", wiretest.Serve(t, scripts...), c.asks())
					require.ErrorIs(t, err, iwarp.ErrAuth)
					require.Len(t, requests, most)
					for n, r := range requests {
						require.Equal(t, byte(2), r[17], "the revision")
						require.Equal(t, byte(cm.SuiteX25519), r[frameOff+5])
						require.Equal(t, n == 1 || m == cm.ModeB, r[frameOff+6] == 1, "the mode is not weaker")
					}
					c.wantQuiet("after a forged refusal")
				})
			}
		}
	}
}

// TestCM_33_NoAnswerIsNoReasonForRevision1: unless AllowRev1 is set; then the Request is signed anew.
func TestCM_33_NoAnswerIsNoReasonForRevision1(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ca, sa := authsOf(t, func(client, _ *cm.Config) { client.AllowRev1 = allowed })
			mute := func(p *wiretest.Peer) { frameFrom(p) }
			scripts := []func(*wiretest.Peer){mute}
			if allowed {
				scripts = append(scripts, func(p *wiretest.Peer) {
					request := frameFrom(p)
					require.Equal(t, byte(1), request[17])
					r, err := sa.Respond(t.Context(), &iwarp.AuthInfo{})
					require.NoError(t, err)
					defer r.Close()
					_, err = r.Open(request, startSize)
					require.NoError(t, err)
				})
			}
			c := newSite(t, ca, nil)
			_, err := c.rnic.Dial(t.Context(), "pipe", wiretest.Serve(t, scripts...), c.asks())
			require.Error(t, err)
		})
	}
}

// TestCM_19_34_ExpectServerStopsAnotherServer: one that holds the same key.
func TestCM_19_34_ExpectServerStopsAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := errors.New("another server")
		s := newScene(t, func(client, server *cm.Config) {
			client.Now = func() time.Time { return time.Unix(1<<33, 0) } // irrelevant in mode B
			server.ID[0]++
			client.ExpectServer = func(p iwarp.Peer) error {
				if p.Name != serverID {
					return other
				}
				return nil
			}
		})
		r := new(relay)
		_, err := s.dials(r)
		require.ErrorIs(t, err, iwarp.ErrAuth)
		require.ErrorIs(t, err, other)
		require.Zero(t, r.sent.Load())
		require.ErrorIs(t, s.next().err, iwarp.ErrAuth)
		s.wantNone("a server that is not expected")
	})
}
