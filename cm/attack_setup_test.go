package cm_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/hex"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// eachNetwork runs a test over each lower layer.
func eachNetwork(t *testing.T, f func(t *testing.T, network string, server, client *tls.Config)) {
	t.Helper()
	for _, network := range []string{"tcp", "pipe", "sctp", "sctp+udp"} {
		t.Run(network, func(t *testing.T) {
			if network == "sctp" {
				wiretest.NeedsSCTP(t)
			}
			f(t, network, nil, nil)
		})
	}
	t.Run("tls", func(t *testing.T) {
		c, roots := selfsigned.New("iwarp.test")
		f(t, "tcp", &tls.Config{Certificates: []tls.Certificate{c}}, &tls.Config{RootCAs: roots, ServerName: "iwarp.test"})
	})
}

// eachKind runs a test in all modes and suites.
func eachKind(t *testing.T, f func(t *testing.T, m cm.Mode, s cm.Suite)) {
	t.Helper()
	for _, m := range []cm.Mode{cm.ModeA, cm.ModeB} {
		for _, s := range []cm.Suite{cm.SuiteHMAC, cm.SuiteX25519} {
			t.Run("mode "+m.String()+" suite "+string('0'+byte(s)), func(t *testing.T) { f(t, m, s) })
		}
	}
}

func export(t testing.TB, qp *iwarp.QP) string {
	t.Helper()
	b, err := qp.Export("label", []byte("context"), 32)
	require.NoError(t, err)
	require.Len(t, b, 32)
	return hex.EncodeToString(b)
}

// TestCM_4_16_23_61_SetUpOverEachNetwork sets up two connections, with as much private data as each
// mode and suite must leave, and with an offer of Commit.
func TestCM_4_16_23_61_SetUpOverEachNetwork(t *testing.T) {
	eachNetwork(t, func(t *testing.T, network string, serverTLS, clientTLS *tls.Config) {
		eachKind(t, func(t *testing.T, m cm.Mode, suite cm.Suite) {
			ca, sa := authsOf(t, func(client, _ *cm.Config) { client.Mode, client.Suite = m, suite })
			h := newHost(t, sa, network, &iwarp.ListenConfig{TLS: serverTLS}, nil)
			mine, theirs := bytes.Repeat([]byte("c"), 100), bytes.Repeat([]byte("s"), 108)
			h.answers = func() *iwarp.QPConfig {
				return &iwarp.QPConfig{PD: h.pd, PrivateData: theirs, Commit: &iwarp.CommitOptions{Negotiate: true}}
			}
			c := newSite(t, ca, nil)
			exports := map[string]bool{}
			for range 2 {
				qc := c.asks()
				qc.PrivateData, qc.TLS, qc.Commit = mine, clientTLS, &iwarp.CommitOptions{Negotiate: true}
				client, err := c.rnic.Dial(t.Context(), network, h.addr, qc)
				require.NoError(t, err)
				server := h.next()
				require.NoError(t, server.err)
				require.Equal(t, theirs, client.PrivateData(), "the application's data alone")
				require.Equal(t, mine, server.qp.PrivateData())
				wantPeers(t, client, server.qp, m, suite)
				e := export(t, client)
				require.Equal(t, e, export(t, server.qp), "both sides have the same keys")
				require.False(t, exports[e], "and other connections have others")
				exports[e] = true
				exchange(t, c, h.site, client, server.qp)
			}
		})
	})
}

func wantPeers(t testing.TB, client, server *iwarp.QP, m cm.Mode, suite cm.Suite) {
	t.Helper()
	p, known := server.Peer()
	require.True(t, known)
	require.Equal(t, iwarp.Peer{ID: p.ID, Kind: cm.KindDerived, Group: "lab", Name: clientID, KeyID: 7, Mode: uint8(m), Suite: uint8(suite)}, p)
	q, known := client.Peer()
	require.True(t, known)
	require.Equal(t, iwarp.Peer{ID: q.ID, Kind: cm.KindServer, Group: "lab", Name: serverID, KeyID: 7, Mode: uint8(m), Suite: uint8(suite)}, q)
}

// exchange passes a message and a Write from the initiator, and a message back.
func exchange(t testing.TB, c, s *site, client, server *iwarp.QP) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wiretest.Patience)
	defer cancel()
	cb, sb := []byte("question"), make([]byte, 16)
	cmr, err := c.pd.RegisterMR(cb, stag.LocalWrite, nil)
	require.NoError(t, err)
	smr, err := s.pd.RegisterMR(sb, stag.LocalWrite|stag.RemoteWrite, nil)
	require.NoError(t, err)
	received := make(chan error, 1)
	go func() {
		_, err := server.Recv(ctx, smr.Slice(0, 8))
		received <- err
	}()
	require.NoError(t, client.RDMAWrite(ctx, smr.Advertise(8, 8), cmr.Slice(0, 8)))
	require.NoError(t, client.Send(ctx, cmr.Slice(0, 8)))
	require.NoError(t, <-received)
	require.Equal(t, "questionquestion", string(sb))
	go func() {
		_, err := client.Recv(ctx, cmr.Slice(0, 8))
		received <- err
	}()
	copy(sb, "answered")
	require.NoError(t, server.Send(ctx, smr.Slice(0, 8)))
	require.NoError(t, <-received)
	require.Equal(t, "answered", string(cb))
}

// TestCM_35_42_RefusalsOverEachNetwork: neither a client with a wrong key nor one without any key
// reaches the application, and both are told.
func TestCM_35_42_RefusalsOverEachNetwork(t *testing.T) {
	eachNetwork(t, func(t *testing.T, network string, serverTLS, clientTLS *tls.Config) {
		_, sa := authsOf(t, nil)
		h := newHost(t, sa, network, &iwarp.ListenConfig{TLS: serverTLS}, nil)
		wrong, err := cm.New(&cm.Config{ID: clientID, Ring: ringOf(t, cm.Key{ID: 7, Secret: make([]byte, 32), Primary: true})})
		require.NoError(t, err)
		c := newSite(t, wrong, nil)
		qc := c.asks()
		qc.TLS = clientTLS
		_, err = c.rnic.Dial(t.Context(), network, h.addr, qc)
		require.ErrorIs(t, err, iwarp.ErrAuth)
		var r *cm.Refusal
		require.ErrorAs(t, err, &r)
		require.Equal(t, cm.CodeRefused, r.Code)

		_, err = c.rnic.Dial(t.Context(), network, h.addr, &iwarp.QPConfig{PD: c.pd, TLS: clientTLS})
		require.Error(t, err, "a plain client")
		require.Empty(t, h.outcomes, "the application has seen nothing of them")
		c.wantQuiet("after refusals")
		require.Equal(t, []uint64{1, 1}, []uint64{sa.Stats().Refused[cm.ReasonBadMAC], sa.Stats().Refused[cm.ReasonNoBlock]})
		log := sa.AccessLog()
		require.Len(t, log, 2, "each is in the log")
		require.Equal(t, []cm.Reason{cm.ReasonBadMAC, cm.ReasonNoBlock}, []cm.Reason{log[0].Reason, log[1].Reason})
	})
}

// TestCM_34_PlainServerIsRefused: a client with an Authenticator sends nothing to a server that
// does not prove its identity, and reports it.
func TestCM_34_PlainServerIsRefused(t *testing.T) {
	eachNetwork(t, func(t *testing.T, network string, serverTLS, clientTLS *tls.Config) {
		ca, _ := authsOf(t, nil)
		h := newHost(t, nil, network, &iwarp.ListenConfig{TLS: serverTLS}, nil)
		c := newSite(t, ca, nil)
		qc := c.asks()
		qc.TLS = clientTLS
		_, err := c.rnic.Dial(t.Context(), network, h.addr, qc)
		require.ErrorIs(t, err, iwarp.ErrAuth)
		c.wantQuiet("after a Reply that proves nothing")
		if o := h.next(); o.err == nil {
			<-o.qp.Done()
			require.Zero(t, o.qp.Stats().Received.Send, "nothing was sent")
		}
	})
}

// TestRefusalOfTheApplicationIsARejectError: its data arrive, signed.
func TestRefusalOfTheApplicationIsARejectError(t *testing.T) {
	eachNetwork(t, func(t *testing.T, network string, serverTLS, clientTLS *tls.Config) {
		ca, sa := authsOf(t, nil)
		h := newHost(t, sa, network, &iwarp.ListenConfig{TLS: serverTLS}, nil)
		h.refuses.Store(true)
		c := newSite(t, ca, nil)
		qc := c.asks()
		qc.TLS = clientTLS
		_, err := c.rnic.Dial(t.Context(), network, h.addr, qc)
		var r *iwarp.RejectError
		require.ErrorAs(t, err, &r)
		require.Equal(t, "not today", string(r.PrivateData))
		require.NoError(t, h.next().err)
		require.Zero(t, sa.Stats().HalfOpen)
	})
}

// TestPolicyAcceptsPlainPeers: peers of this library, and peers that request like siw.
func TestPolicyAcceptsPlainPeers(t *testing.T) {
	ca, sa := authsOf(t, func(_, server *cm.Config) { server.AllowUnauthenticated = true })
	for _, network := range []string{"tcp", "pipe", "sctp+udp"} {
		h := newHost(t, sa, network, nil, nil)
		c := newSite(t, ca, nil)
		qp, err := c.rnic.Dial(t.Context(), network, h.addr, &iwarp.QPConfig{PD: c.pd, PrivateData: []byte("plain")})
		require.NoError(t, err)
		o := h.next()
		require.NoError(t, o.err)
		require.Equal(t, "plain", string(o.qp.PrivateData()))
		_, known := o.qp.Peer()
		require.False(t, known, "it may be anyone")
		_, err = o.qp.Export("label", nil, 32)
		require.ErrorIs(t, err, iwarp.ErrUnsupported)
		exchange(t, c, h.site, qp, o.qp)
		if network == "sctp+udp" {
			continue
		}
		p := wiretest.Dial(t, network, h.addr, wiretest.Hex(wiretest.DefaultRequest))
		p.WantReply("a Request of siw's kind is answered as ever", "50 02 0004 8010 8010")
		require.NoError(t, h.next().err)
		p.Close()
	}
}

// TestCM_3_DataThatDoNotFitLeaveNoPacket: Dial reports how much room is left, and does not connect.
func TestCM_3_DataThatDoNotFitLeaveNoPacket(t *testing.T) {
	ca, sa := authsOf(t, nil)
	c := newSite(t, ca, nil)
	qc := c.asks()
	qc.PrivateData = make([]byte, 153)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = c.rnic.Dial(t.Context(), "tcp", l.Addr().String(), qc)
	require.ErrorContains(t, err, "153 octets")
	require.ErrorContains(t, err, "152")
	require.NotErrorIs(t, err, iwarp.ErrAuth)
	c.wantQuiet("after an error of the caller's")

	h := newHost(t, sa, "pipe", nil, nil)
	h.answers = func() *iwarp.QPConfig { return &iwarp.QPConfig{PD: h.pd, PrivateData: make([]byte, 161)} }
	qc = c.asks()
	qc.PrivateData = make([]byte, 152)
	_, err = c.rnic.Dial(t.Context(), "pipe", h.addr, qc)
	require.Error(t, err)
	o := h.next()
	require.ErrorContains(t, o.err, "160")
	h.wantQuiet("after an error of the caller's")
	require.Zero(t, sa.Stats().HalfOpen)
}

// TestCM_4_LargePrivateData: the application can use what the block leaves of 508 octets, in both directions.
func TestCM_4_LargePrivateData(t *testing.T) {
	ca, sa := authsOf(t, nil)
	h := newHost(t, sa, "pipe", nil, nil)
	mine, theirs := bytes.Repeat([]byte("c"), 508-96), bytes.Repeat([]byte("s"), 508-88)
	large := iwarp.MPAOptions{LargePrivateData: true}
	h.answers = func() *iwarp.QPConfig { return &iwarp.QPConfig{PD: h.pd, PrivateData: theirs, MPA: large} }
	c := newSite(t, ca, nil)
	qc := c.asks()
	qc.PrivateData, qc.MPA = mine, large
	client, err := c.rnic.Dial(t.Context(), "pipe", h.addr, qc)
	require.NoError(t, err)
	o := h.next()
	require.NoError(t, o.err)
	require.Equal(t, theirs, client.PrivateData())
	require.Equal(t, mine, o.qp.PrivateData())
}

// TestCM_32_TryModeBOverEachNetwork: a client of mode A whose server is in its blackout, or does not
// accept mode A, connects in mode B.
func TestCM_32_TryModeBOverEachNetwork(t *testing.T) {
	eachNetwork(t, func(t *testing.T, network string, serverTLS, clientTLS *tls.Config) {
		ca, sa := authsOf(t, func(client, server *cm.Config) { client.Mode, server.Now = cm.ModeA, nil })
		h := newHost(t, sa, network, &iwarp.ListenConfig{TLS: serverTLS}, nil)
		c := newSite(t, ca, nil)
		qc := c.asks()
		qc.TLS = clientTLS
		qp, err := c.rnic.Dial(t.Context(), network, h.addr, qc)
		require.NoError(t, err)
		o := h.next()
		require.NoError(t, o.err)
		wantPeers(t, qp, o.qp, cm.ModeB, cm.SuiteHMAC)
		exchange(t, c, h.site, qp, o.qp)
	})
}

// TestCM_20_RTRBesideTheFirstMessage: it is an error of the caller, and of an initiator that requests it.
func TestCM_20_RTRBesideTheFirstMessage(t *testing.T) {
	ca, sa := authsOf(t, nil)
	h := newHost(t, sa, "pipe", nil, nil)
	c := newSite(t, ca, nil)
	for _, o := range []iwarp.MPAOptions{{RTR: iwarp.RTRSend}, {StrictRTR: true}} {
		qc := c.asks()
		qc.MPA = o
		_, err := c.rnic.Dial(t.Context(), "pipe", h.addr, qc)
		require.ErrorContains(t, err, "RTR")
	}
	require.Empty(t, h.outcomes)

	i := &intruder{dialRaw(t, h.addr), initiates(t, ca)}
	start := startOf("Req", 0x50, i.session.Overhead())
	start[startSize], start[startSize+2] = 0x80, 0xc0 // A, and the RTRs of C and D
	request, err := i.session.Wrap(start, nil)
	require.NoError(t, err)
	i.Write(request)
	_, err = i.session.Open(frameFrom(i.Peer), frameOff)
	require.NoError(t, err)
	_, _ = i.Conn.Write(wiretest.FPDU(wiretest.Send(1, 0, string(i.first())))) // the connection may have ended
	require.ErrorIs(t, h.next().err, iwarp.ErrAuth)
	h.wantQuiet("after a Request with A = 1")
}
