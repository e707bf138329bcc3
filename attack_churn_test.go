package iwarp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// visitor connects to the listener; the test plays it.
func (v *victim) visitor(l *iwarp.Listener) *wiretest.Peer {
	v.Helper()
	c, err := transport.Dial(v.Context(), "pipe", l.Addr().String(), transport.Options{})
	require.NoError(v, err)
	return &wiretest.Peer{TB: v.T, Conn: c}
}

// admits lets a peer in, as a server does.
func (v *victim) admits(l *iwarp.Listener, p *wiretest.Peer) *iwarp.QP {
	v.Helper()
	p.Write([]byte(wiretest.RequestKey + "\x40\x01\x00\x00"))
	cr, err := l.Accept(testContext(v.T))
	require.NoError(v, err)
	qp, err := cr.Accept(testContext(v.T), &iwarp.QPConfig{PD: v.pd})
	require.NoError(v, err)
	p.WantReply("it is let in", crcOnly)
	return qp
}

// TestAttackChurn: 500 connections are made, and left in all phases, by a FIN and by a RST. Nothing is left of them.
func TestAttackChurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newLonelyVictim(t)
		l, err := v.rnic.Listen(testContext(t), "pipe", "", nil)
		require.NoError(t, err)
		defer l.Close()
		synctest.Wait()
		before := v.rnic.InUse()
		phases := []func(p *wiretest.Peer){
			func(*wiretest.Peer) {},
			func(p *wiretest.Peer) { p.Write([]byte(wiretest.RequestKey[:7])) },
			func(p *wiretest.Peer) { v.admits(l, p) },
			func(p *wiretest.Peer) { v.admits(l, p); p.Send(wiretest.Write(0, 0, "")) },
			func(p *wiretest.Peer) { v.admits(l, p); p.Write(wiretest.FPDU(wiretest.Write(0, 0, ""))[:11]) },
		}
		established := 0
		for i := range 500 {
			p := v.visitor(l)
			phase := i / 2 % len(phases)
			phases[phase](p)
			if phase >= 2 {
				established++
			}
			if i%2 == 0 {
				p.Close()
			} else {
				p.Abort()
			}
		}
		time.Sleep(time.Minute) // for the timers of ends
		synctest.Wait()
		require.Equal(t, before, v.rnic.InUse(), "nothing is left")
		ends := 0
		for len(v.rnic.Events()) > 0 {
			<-v.rnic.Events()
			ends++
		}
		require.Equal(t, established, ends+int(v.rnic.EventsDropped()), "each end is told, or counted")
		v.othersLive()
	})
}

// TestAttackTerminateStorm: 100 streams end by Terminates, each by many at once, with bad Writes between them.
// Each stream takes one Terminate, answers none, and is reported by one Event.
func TestAttackTerminateStorm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newLonelyVictim(t)
		l, err := v.rnic.Listen(testContext(t), "pipe", "", nil)
		require.NoError(t, err)
		defer l.Close()
		for i := range 100 {
			p := v.visitor(l)
			qp := v.admits(l, p)
			p.Send(wiretest.Write(0, 0, ""))
			var storm [][]byte
			for msn := range uint32(1 + i%20) {
				storm = append(storm, wiretest.Untagged(0x41, 0x47, 0, 2, msn+1, 0, "\x12\x03\x00\x00"), wiretest.Write(0xbad, 0, "bad"))
			}
			p.Send(storm...)
			require.Empty(t, p.Rest(), "a Terminate is not answered")
			p.Close()
			<-qp.Done()
			e := <-v.rnic.Events()
			require.Equal(t, iwarp.EventTerminateReceived, e.Kind)
			require.Same(t, qp, e.QP)
			require.Empty(t, v.rnic.Events(), "the end is told once")
		}
		v.othersLive()
	})
}
