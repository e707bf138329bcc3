package iwarp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// overSCTP is the network of the tests here.
var overSCTP = "sctp+udp"

func TestSessionsOverARealSocket(t *testing.T) { writeReadSend(t, pairConfig{network: overSCTP}) }

func TestSCTP_16_27_60_SetupOverSCTP(t *testing.T) {
	client, server := connect(t, pairConfig{
		network: overSCTP,
		client:  iwarp.QPConfig{PrivateData: []byte("from the client"), IRD: 3, ORD: 40},
		server:  iwarp.QPConfig{PrivateData: make([]byte, 508), IRD: 5, ORD: 7},
	})
	require.Equal(t, "from the client", string(server.qp.PrivateData()))
	require.Len(t, client.qp.PrivateData(), 508)
	require.Equal(t, []int{3, 5}, []int{client.qp.IRD(), client.qp.ORD()})
	require.Equal(t, []int{5, 3}, []int{server.qp.IRD(), server.qp.ORD()})
	require.Equal(t, overSCTP, client.qp.RemoteAddr().Network())
	require.Equal(t, client.qp.LocalAddr().String(), server.qp.RemoteAddr().String())
}

// TestSCTP_52_TerminateOverSCTP: RDMAP's Terminate comes before the one that ends the session.
func TestSCTP_52_TerminateOverSCTP(t *testing.T) {
	client, server := connect(t, pairConfig{network: overSCTP})
	_, mr := client.register(8, stag.LocalWrite, nil)
	require.NoError(t, client.qp.PostSend(iwarp.SendWR{ID: 7, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(0, 8)}, Remote: iwarp.RemoteBuffer{STag: 0x11223344, Len: 8}}))
	wc := client.completes(client.qp.SendCQ(), 1)[0]
	require.Equal(t, iwarp.StatusRemoteAccess, wc.Status, "the Terminate names the Read")
	for _, s := range []*side{client, server} {
		<-s.qp.Done()
		te := s.qp.Terminated()
		require.NotNil(t, te)
		require.Equal(t, s == client, te.Remote)
		require.Equal(t, []uint8{0, 1, 0}, []uint8{te.Layer, te.Type, te.Code}, "RDMAP, remote protection, invalid STag")
	}
}

// hostedSCTP is a server over SCTP that calls do for each request.
func hostedSCTP(t *testing.T, cfg *iwarp.Config, lc *iwarp.ListenConfig, do func(*side, *iwarp.ConnRequest)) (*side, string) {
	var accepting sync.WaitGroup
	t.Cleanup(accepting.Wait) // after the end of the RNIC, which ends the listener
	server := newSide(t, cfg)
	l, err := server.rnic.Listen(t.Context(), overSCTP, "127.0.0.1:0", lc)
	require.NoError(t, err)
	accepting.Go(func() {
		for {
			cr, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			do(server, cr)
		}
	})
	return server, l.Addr().String()
}

func TestSCTP_25_56_RejectOverSCTP(t *testing.T) {
	_, addr := hostedSCTP(t, nil, nil, func(s *side, cr *iwarp.ConnRequest) {
		require.NoError(s, cr.RejectDepths([]byte("not you"), 9, -1))
	})
	client := newSide(t, nil)
	for _, revision := range []int{1, 2} {
		_, err := client.rnic.Dial(testContext(t), overSCTP, addr, &iwarp.QPConfig{PD: client.pd, MPA: iwarp.MPAOptions{Revision: revision}})
		var rejected *iwarp.RejectError
		require.ErrorAs(t, err, &rejected)
		require.ErrorIs(t, err, iwarp.ErrRejected)
		require.Equal(t, "not you", string(rejected.PrivateData))
		require.Equal(t, map[int]int{1: -1, 2: 9}[revision], rejected.IRD)
	}
}

// TestSCTP_17_18_TooManyRequestsAreRefused: without the application, which answers none of them.
func TestSCTP_17_18_TooManyRequestsAreRefused(t *testing.T) {
	server := newSide(t, nil)
	l, err := server.rnic.Listen(t.Context(), overSCTP, "127.0.0.1:0", &iwarp.ListenConfig{MaxHalfOpen: 2})
	require.NoError(t, err)
	client := newSide(t, nil)
	ctx, cancel := context.WithCancel(testContext(t))
	ends := make(chan error, 8)
	for range cap(ends) {
		go func() {
			_, err := client.rnic.Dial(ctx, overSCTP, l.Addr().String(), &iwarp.QPConfig{PD: client.pd})
			ends <- err
		}()
	}
	for range 4 { // two are with the listener, and at most two wait behind them
		require.ErrorIs(t, <-ends, sctp.ErrRefused)
	}
	cancel()
	waited := 0
	for range 4 {
		if err := <-ends; err == nil || !errors.Is(err, sctp.ErrRefused) {
			require.ErrorIs(t, err, context.Canceled)
			waited++
		}
	}
	require.GreaterOrEqual(t, waited, 2)
}

func TestUnsupportedOverSCTP(t *testing.T) {
	_, addr := hostedSCTP(t, nil, nil, func(_ *side, cr *iwarp.ConnRequest) { _ = cr.Reject(nil) })
	client := newSide(t, nil)
	ctx := testContext(t)
	for _, qc := range []*iwarp.QPConfig{{PD: client.pd, TLS: &tls.Config{}}, {PD: client.pd, Trace: io.Discard}} {
		_, err := client.rnic.Dial(ctx, overSCTP, addr, qc)
		require.ErrorIs(t, err, iwarp.ErrUnsupported)
	}
	_, err := client.rnic.Listen(ctx, overSCTP, "127.0.0.1:0", &iwarp.ListenConfig{TLS: &tls.Config{}})
	require.ErrorIs(t, err, iwarp.ErrUnsupported)

	_, err = client.rnic.Dial(ctx, overSCTP, "127.0.0.1:0", &iwarp.QPConfig{PD: client.pd})
	require.Error(t, err)
	_, err = client.rnic.Dial(ctx, overSCTP, "127.0.0.1:1/70000", &iwarp.QPConfig{PD: client.pd})
	require.ErrorAs(t, err, new(*net.AddrError))
}

// TestSCTP_19_51_53_ThousandQPsShareTenAssociations: all move data at once, and QPs that end do not disturb the others.
func TestSCTP_19_51_53_ThousandQPsShareTenAssociations(t *testing.T) {
	const associations, size = 10, 20_000
	each := 100
	if raceorder.Enabled { // it makes a QP cost milliseconds
		each = 10
	}
	big := &iwarp.Config{Limits: iwarp.Limits{MaxHalfOpen: 1024}}
	var qps sync.Map
	var sink *iwarp.MR
	ready := make(chan struct{})
	server, addr := hostedSCTP(t, big, &iwarp.ListenConfig{MaxHalfOpen: 1024}, func(s *side, cr *iwarp.ConnRequest) {
		<-ready
		qp, err := cr.Accept(context.Background(), &iwarp.QPConfig{PD: s.pd, SendDepth: 8, RecvDepth: 8})
		require.NoError(s, err)
		qps.Store(string(cr.PrivateData()), qp)
	})
	_, sink = server.register(associations*each*size, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	close(ready)

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // the lab emulates its processors
	defer cancel()
	before := aliveHeap()
	clients := make([]*side, associations)
	all := make([]*iwarp.QP, associations*each)
	src := make([]*iwarp.MR, associations)
	var dials sync.WaitGroup
	for i := range clients {
		c := newSide(t, nil)
		clients[i] = c
		b, mr := c.register(size, stag.LocalWrite, nil)
		fillRandom(b)
		src[i] = mr
		for j := range each {
			dials.Go(func() {
				n := i*each + j
				qp, err := c.rnic.Dial(ctx, overSCTP, addr, &iwarp.QPConfig{PD: c.pd, SendDepth: 8, RecvDepth: 8})
				if err != nil {
					t.Errorf("QP %d: %v", n, err)
					return
				}
				all[n] = qp
			})
		}
	}
	dials.Wait()
	if t.Failed() {
		return
	}
	took := int64(aliveHeap()-before) / int64(2*len(all))
	t.Logf("a QP takes %d octets", took)
	if !raceorder.Enabled {
		require.Less(t, took, int64(64<<10))
	}
	remote := make(map[string]bool)
	for _, qp := range all {
		remote[qp.LocalAddr().String()] = true
	}
	require.Len(t, remote, associations)

	move := func(qps []*iwarp.QP, first, step int) {
		var moves sync.WaitGroup
		for n := first; n < len(qps); n += step {
			moves.Go(func() {
				to := sink.Advertise(n*size, size)
				back := make([]byte, size)
				if err := qps[n].RDMAWrite(ctx, to, src[n/each].Slice(0, size)); err != nil {
					t.Errorf("QP %d: %v", n, err)
					return
				}
				if _, err := qps[n].Remote(to).ReadAt(back, 0); err != nil {
					t.Errorf("QP %d: %v", n, err)
				}
			})
		}
		moves.Wait()
	}
	start := time.Now()
	move(all, 0, 1)
	t.Logf("%d QPs have moved %d octets each in %v", len(all), 2*size, time.Since(start))
	var ends sync.WaitGroup
	for n := 0; n < len(all); n += 2 {
		ends.Go(func() {
			if n%4 == 0 {
				require.NoError(t, all[n].Close())
			} else {
				require.NoError(t, all[n].Abort())
			}
		})
	}
	move(all, 1, 2)
	ends.Wait()
	move(all, 1, 2)
	for n := 1; n < len(all); n += 2 {
		require.Equal(t, iwarp.StateRTS, all[n].State())
	}
}

// TestMPA2_36_RefusedSessionOfRFC5043IsNotAskedForAgain: there is nothing less to fall back to.
func TestMPA2_36_RefusedSessionOfRFC5043IsNotAskedForAgain(t *testing.T) {
	for o, asked := range map[iwarp.MPAOptions]uint64{{Revision: 1}: 1, {FixedDepths: true}: 1, {Revision: 2}: 2} {
		for _, auth := range []iwarp.Authenticator{nil, rev1Auth{new(mockAuth)}} {
			client, server := newSide(t, nil), newSide(t, nil)
			l, err := server.rnic.Listen(testContext(t), "sctp+udp", wiretest.Local("sctp+udp"), &iwarp.ListenConfig{
				Admit: func(net.Addr) error { return errors.New("not you") },
			})
			require.NoError(t, err)
			qc := &iwarp.QPConfig{PD: client.pd, MPA: o, Auth: auth}
			_, err = client.rnic.Dial(testContext(t), "sctp+udp", l.Addr().String(), qc)
			require.ErrorIs(t, err, sctp.ErrRefused)
			require.Equal(t, asked, server.rnic.Stats().Refused[counters.CauseNotAdmitted], "%+v", o)
			require.NoError(t, l.Close())
		}
	}
}

// A rev1Auth takes revision 1, too.
type rev1Auth struct{ *mockAuth }

func (rev1Auth) AllowRev1() bool { return true }
