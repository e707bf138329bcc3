package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/selfsigned"
)

// setupSpans are the stages of a connection without TLS, in order.
var setupSpans = []string{"iwarp.setup.qp", "iwarp.setup.dial", "iwarp.setup.request", "iwarp.setup.reply", "iwarp.setup.confirm", "iwarp.setup.ready"}

// TestSetUpIsASpanWithItsStages, on the side that dials, and one span on the other.
func TestSetUpIsASpanWithItsStages(t *testing.T) {
	r, server := record(t), newSide(t, 0)
	client := newSide(t, 0)
	there := record(t)
	accepted := make(chan error, 1)
	addr := server.listens(t, func(cr *iwarp.ConnRequest) {
		_, err := there.Accept(timely(t), cr, &iwarp.QPConfig{PD: server.pd})
		accepted <- err
	})
	var user []iwarp.SetupStage
	qc := &iwarp.QPConfig{PD: client.pd, SetupTrace: &iwarp.SetupTrace{Leave: func(s iwarp.SetupStage, err error) {
		require.NoError(t, err)
		user = append(user, s)
	}}}
	ctx, caller := r.within(t)
	qp, err := r.Dial(ctx, client.rnic, "pipe", addr, qc)
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	caller.End()

	spans := r.take()
	require.Equal(t, append(slices.Clone(setupSpans), "iwarp.dial", "caller"), namesOf(spans))
	dial := spans[len(spans)-2]
	require.Equal(t, caller.SpanContext().SpanID(), dial.Parent.SpanID())
	require.Equal(t, trace.SpanKindClient, dial.SpanKind)
	require.Equal(t, codes.Unset, dial.Status.Code)
	for _, s := range spans[:len(setupSpans)] {
		require.Equal(t, dial.SpanContext.SpanID(), s.Parent.SpanID(), s.Name)
		require.Equal(t, trace.SpanKindInternal, s.SpanKind)
	}
	require.Equal(t, map[string]any{
		"server.address": addr, "network.transport": "pipe", "network.peer.address": addr, "network.local.address": qp.LocalAddr().String(), "iwarp.path": "pipe",
	}, attributesOf(&dial))
	require.Len(t, user, len(setupSpans), "the trace of the configuration is told too")
	require.NotNil(t, qc.SetupTrace.Leave, "the configuration is the caller's")

	accept := there.only(t)
	require.Equal(t, "iwarp.accept", accept.Name)
	require.Equal(t, trace.SpanKindServer, accept.SpanKind)
	require.Equal(t, qp.LocalAddr().String(), attributesOf(&accept)["network.peer.address"])
	require.Equal(t, "pipe", attributesOf(&accept)["iwarp.path"])
}

// TestQPKeepsNoTrace: the garbage collector frees what the user's functions refer to.
func TestQPKeepsNoTrace(t *testing.T) {
	r, server, client := record(t), newSide(t, 0), newSide(t, 0)
	accepted := make(chan error, 1)
	addr := server.listens(t, func(cr *iwarp.ConnRequest) {
		_, err := cr.Accept(timely(t), &iwarp.QPConfig{PD: server.pd})
		accepted <- err
	})
	user := new([100]iwarp.SetupStage)
	kept := weak.Make(user)
	n := 0
	qp, err := r.Dial(timely(t), client.rnic, "pipe", addr, &iwarp.QPConfig{PD: client.pd, SetupTrace: &iwarp.SetupTrace{
		Leave: func(s iwarp.SetupStage, _ error) { user[n] = s; n++ },
	}})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	require.Eventually(t, func() bool { runtime.GC(); return kept.Value() == nil }, time.Minute, time.Millisecond)
	runtime.KeepAlive(qp)
}

// TestSetUpThatFails has the error in its own span, and in that of the stage.
func TestSetUpThatFails(t *testing.T) {
	r, server, client := record(t), newSide(t, 0), newSide(t, 0)
	addr := server.listens(t, func(cr *iwarp.ConnRequest) {
		if err := cr.Reject(nil); err != nil {
			t.Error(err)
		}
	})
	refused := errors.New("of the test")
	for _, c := range []struct {
		name, addr, class, stage string
		stages                   int // that have spans
		trace                    *iwarp.SetupTrace
		pd                       *iwarp.PD
	}{
		{name: "rejected", addr: addr, class: "rejected", stage: "reply", stages: 4, pd: client.pd},
		{name: "no listener", addr: "nowhere", class: "connection", stage: "dial", stages: 2, pd: client.pd},
		{name: "no PD", addr: addr, class: "_OTHER", stage: "qp", stages: 1},
		{name: "refused by the user", addr: addr, class: "_OTHER", stage: "request", stages: 2, pd: client.pd, trace: &iwarp.SetupTrace{
			Enter: func(_ context.Context, s iwarp.SetupStage) error {
				if s == iwarp.StageRequest {
					return refused
				}
				return nil
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := r.Dial(timely(t), client.rnic, "pipe", c.addr, &iwarp.QPConfig{PD: c.pd, SetupTrace: c.trace})
			require.Error(t, err)
			spans := r.take()
			require.Equal(t, append(slices.Clone(setupSpans[:c.stages]), "iwarp.dial"), namesOf(spans))
			dial := spans[len(spans)-1]
			require.Equal(t, codes.Error, dial.Status.Code)
			require.Equal(t, err.Error(), dial.Status.Description)
			require.Equal(t, c.class, attributesOf(&dial)["error.type"])
			require.Equal(t, c.stage, attributesOf(&dial)["iwarp.setup.stage"])
			if last := spans[len(spans)-2]; c.trace == nil {
				require.Equal(t, codes.Error, last.Status.Code, last.Name)
				require.Equal(t, c.class, attributesOf(&last)["error.type"])
			}
		})
	}
}

// TestSetUpThatTLSRefuses is distinguished from a lost connection, on whichever side the handshake has failed.
func TestSetUpThatTLSRefuses(t *testing.T) {
	cert, roots := selfsigned.New("iwarp.test")
	for name, c := range map[string]struct{ theirs, ours *tls.Config }{
		"by the peer":       {&tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"one"}}, &tls.Config{NextProtos: []string{"another"}}},
		"by this side":      {&tls.Config{Certificates: []tls.Certificate{cert}}, &tls.Config{RootCAs: x509.NewCertPool()}},
		"a peer without it": {nil, &tls.Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, client, server := record(t), newSide(t, 0), newSide(t, 0)
			l, err := server.rnic.Listen(timely(t), "pipe", "", &iwarp.ListenConfig{TLS: c.theirs})
			require.NoError(t, err)
			if c.ours.ServerName = "iwarp.test"; c.ours.RootCAs == nil {
				c.ours.RootCAs = roots
			}
			_, err = r.Dial(timely(t), client.rnic, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: client.pd, TLS: c.ours})
			require.Error(t, err)
			spans := r.take()
			require.Equal(t, []string{"iwarp.setup.qp", "iwarp.setup.dial", "iwarp.setup.secure", "iwarp.dial"}, namesOf(spans))
			for _, s := range spans[2:] {
				require.Equal(t, "tls", attributesOf(&s)["error.type"], "%s: %v", s.Name, err)
			}
		})
	}
}

// TestSessionThatThePeerRefuses counts as no connection, as over TCP if the listener closes the connection.
func TestSessionThatThePeerRefuses(t *testing.T) {
	r, client, server := record(t), newSide(t, 0), newSide(t, 0)
	refuses := func(net.Addr) error { return errors.New("of the test") }
	l, err := server.rnic.Listen(timely(t), "sctp+udp", "127.0.0.1:0", &iwarp.ListenConfig{Admit: refuses})
	require.NoError(t, err)
	_, err = r.Dial(timely(t), client.rnic, "sctp+udp", l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
	require.ErrorContains(t, err, "the peer refused the session")
	spans := r.take()
	for _, s := range spans[len(spans)-2:] {
		require.Equal(t, "connection", attributesOf(&s)["error.type"], s.Name)
	}
	require.Equal(t, counters.Setups{counters.CauseConnection: 1}, client.rnic.Stats().Failed)
}

// TestAcceptThatFails, because of its configuration.
func TestAcceptThatFails(t *testing.T) {
	r, server, client := record(t), newSide(t, 0), newSide(t, 0)
	accepted := make(chan error, 1)
	addr := server.listens(t, func(cr *iwarp.ConnRequest) {
		_, err := r.Accept(timely(t), cr, &iwarp.QPConfig{PD: client.pd}) // of another RNIC
		accepted <- err
	})
	_, err := client.rnic.Dial(timely(t), "pipe", addr, &iwarp.QPConfig{PD: client.pd, MPA: iwarp.MPAOptions{NoFallback: true}})
	require.Error(t, err)
	require.Error(t, <-accepted)
	span := r.only(t)
	require.Equal(t, codes.Error, span.Status.Code)
	require.Equal(t, "_OTHER", attributesOf(&span)["error.type"])
	require.Equal(t, addr, attributesOf(&span)["network.local.address"])
}

// TestClientOverAConnectionThatExists, whose stages have no dial.
func TestClientOverAConnectionThatExists(t *testing.T) {
	r, client, server := record(t), newSide(t, 0), newSide(t, 0)
	here, there := net.Pipe()
	accepted := make(chan error, 1)
	go func() {
		cr, err := server.rnic.Server(timely(t), there, nil)
		if err == nil {
			_, err = cr.Accept(timely(t), &iwarp.QPConfig{PD: server.pd})
		}
		accepted <- err
	}()
	_, err := r.Client(timely(t), client.rnic, here, &iwarp.QPConfig{PD: client.pd})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	require.Equal(t, append([]string{setupSpans[0]}, append(slices.Clone(setupSpans[2:]), "iwarp.client")...), namesOf(r.take()))

	for _, c := range []net.Conn{nil, (*net.TCPConn)(nil)} {
		_, err = r.Client(timely(t), client.rnic, c, &iwarp.QPConfig{PD: client.pd})
		require.ErrorContains(t, err, "the net.Conn is nil")
		require.Empty(t, r.take())
	}
}

// TestStagesForDialMany: each target has its own.
func TestStagesForDialMany(t *testing.T) {
	r, client, server := record(t), newSide(t, 0), newSide(t, 0)
	accepted := make(chan error, 3)
	addr := server.listens(t, func(cr *iwarp.ConnRequest) {
		_, err := cr.Accept(timely(t), &iwarp.QPConfig{PD: server.pd})
		accepted <- err
	})
	ctx, caller := r.within(t)
	for _, res := range cm.DialMany(ctx, func(yield func(cm.Target) bool) {
		for range 3 {
			if !yield(cm.Target{Network: "pipe", Addr: addr, QP: &iwarp.QPConfig{PD: client.pd, SetupTrace: r.Stages(nil)}}) {
				return
			}
		}
	}, &cm.Options{RNIC: client.rnic}) {
		require.NoError(t, res.Err)
		require.NoError(t, <-accepted)
	}
	spans := r.take()
	require.Len(t, spans, 3*len(setupSpans))
	for _, s := range spans {
		require.Equal(t, caller.SpanContext().SpanID(), s.Parent.SpanID())
	}
}

func TestAddressesAreTakenApart(t *testing.T) {
	for addr, want := range map[string]struct {
		host string
		port int
	}{
		"192.0.2.1:80": {"192.0.2.1", 80}, "[2001:db8::1%eth0]:65535": {"2001:db8::1%eth0", 65535}, "host:http": {"host:http", 0}, "pipe": {"pipe", 0}, "": {"", 0},
	} {
		host, port := split(addr)
		require.Equal(t, want.host, host, addr)
		require.Equal(t, want.port, port, addr)
	}
	require.Equal(t, "tcp", transport("tcp6").Value.AsString())
	require.Empty(t, ends(nil, nil))
	attrs := ends(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 2})
	require.Len(t, attrs, 5)
	require.Len(t, target("tcp", "192.0.2.1:80"), 3)
}
