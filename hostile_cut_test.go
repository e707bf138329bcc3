package iwarp_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// A step is a part of what a peer sends, with its effect on the victim's memory.
type step struct {
	wire []byte
	at   int // in the arena
	data string
}

// conversation returns all that a well-behaved peer sends after its Request.
func (v *victim) conversation() []step {
	hello := strings.Repeat("h", 16)
	answer := strings.Repeat("r", sinkLen)
	return []step{
		{wiretest.FPDU(wiretest.Write(v.mr.STag(), regionTO, hello)), regionAt, hello},
		{wiretest.FPDU(wiretest.Send(1, 0, "message")), recvAt, "message"},
		{wiretest.FPDU(wiretest.ReadResponse(0xc1, v.sink.STag(), 0, answer)), sinkAt, answer},
		{wiretest.FPDU(wiretest.ReadRequest(1, 1, 0, 16, v.mr.STag(), regionTO)), 0, ""},
		{wiretest.FPDU(wiretest.Write(v.mr.STag(), regionTO+regionLen-3, "end")), regionAt + regionLen - 3, "end"},
	}
}

// boundary reports whether a step ends after n octets, and which: 0 is before the first.
func boundary(steps []step, n int) (after int, ok bool) {
	for i, s := range steps {
		if n < len(s.wire) {
			return i, n == 0
		}
		n -= len(s.wire)
	}
	return len(steps), n == 0
}

// played applies to want the steps that are complete after n octets.
func (v *victim) played(steps []step, n int) {
	for _, s := range steps {
		if n < len(s.wire) {
			return
		}
		n -= len(s.wire)
		copy(v.want[s.at:], s.data)
	}
}

func join(steps []step) (wire []byte) {
	for _, s := range steps {
		wire = append(wire, s.wire...)
	}
	return wire
}

// TestDDP_60_61_73_CutAtEveryOctet: the peer ends or resets the connection anywhere. Complete messages are placed,
// others are not, every work request completes once, and the QP ends.
func TestDDP_60_61_73_CutAtEveryOctet(t *testing.T) {
	total := 1
	for at := 0; at < total; at++ {
		for _, reset := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				v := newLonelyVictim(t)
				var cr *iwarp.ConnRequest
				v.p, cr = requester(t, v.rnic, "pipe", wiretest.Hex("40 01 00 00"))
				var err error
				v.qp, err = cr.Accept(testContext(t), &iwarp.QPConfig{PD: v.pd, SendCQ: v.cq, RecvCQ: v.cq})
				require.NoError(t, err)
				v.posts()

				steps := v.conversation()
				wire := join(steps)
				total = len(wire) + 1
				v.p.Write(wire[:at])
				synctest.Wait()
				v.p.Cut(reset)
				<-v.qp.Done()

				v.played(steps, at)
				where := fmt.Sprintf("cut after %d octets, reset %t", at, reset)
				require.Equal(t, v.want, v.arena, where)
				require.ErrorIs(t, v.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), net.ErrClosed, where)
				var wcs [3]iwarp.WC
				require.Equal(t, 2, v.cq.Poll(wcs[:]), "%s: what was posted completes, once", where)
				v.wantEndOf(steps, at, reset)
				v.othersLive()
			})
		}
	}
}

// wantEndOf checks the reports of a connection that was cut after at octets.
func (v *victim) wantEndOf(steps []step, at int, reset bool) {
	v.Helper()
	const responseAt = 3 // with the third step the QP has no work left
	kind := iwarp.EventConnectionLost
	if after, ok := boundary(steps, at); ok && !reset {
		kind = iwarp.EventClosed
		if after < responseAt {
			kind = iwarp.EventTerminated
			v.wantCause(v.qp.Err(), attack{code: 0x0207})
		}
	}
	e := <-v.rnic.Events()
	require.Equal(v, kind, e.Kind, "cut after %d octets, reset %t", at, reset)
	if kind == iwarp.EventClosed {
		require.NoError(v, v.qp.Err())
		return
	}
	require.ErrorIs(v, e.Err, net.ErrClosed)
	require.ErrorIs(v, v.qp.Err(), net.ErrClosed)
}

// TestMPA_62_63_CutDuringSetup: an incomplete Request makes no connection.
func TestMPA_62_63_CutDuringSetup(t *testing.T) {
	request := []byte(wiretest.RequestKey + "\x50\x02\x00\x06\x00\x01\x00\x01hi")
	for at := range request {
		for _, reset := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				v := newLonelyVictim(t)
				a, b := transport.Pipe(transport.PipeOptions{})
				p := &wiretest.Peer{TB: t, Conn: a}
				p.Write(request[:at])
				failed := make(chan error, 1)
				go func() {
					_, err := v.rnic.Server(testContext(t), b, nil)
					failed <- err
				}()
				synctest.Wait()
				p.Cut(reset)
				var f *transport.Fault
				require.ErrorAs(t, <-failed, &f)
				require.Equal(t, transport.MPAConnectionLost, f.Code)
				_ = a.Close() // it may be aborted
				v.othersLive()
			})
		}
	}
}

// TestMPA_67_81_CutDuringReply: an incomplete Reply makes no connection either.
func TestMPA_67_81_CutDuringReply(t *testing.T) {
	reply := []byte(wiretest.ReplyKey + "\x50\x02\x00\x06\x00\x01\x00\x01hi")
	for at := range reply {
		for _, reset := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				v := newLonelyVictim(t)
				a, b := transport.Pipe(transport.PipeOptions{})
				p := &wiretest.Peer{TB: t, Conn: a}
				failed := make(chan error, 1)
				go func() {
					_, err := v.rnic.Client(testContext(t), b, &iwarp.QPConfig{PD: v.pd})
					failed <- err
				}()
				p.Read(24)
				p.Write(reply[:at])
				synctest.Wait()
				p.Cut(reset)
				err := <-failed
				var f *transport.Fault
				require.ErrorAs(t, err, &f)
				require.Equal(t, transport.MPAConnectionLost, f.Code)
				require.Equal(t, at == 0, errors.Is(err, iwarp.ErrUnsupported), "only without one octet can it be an older peer")
				_ = a.Close() // it may be aborted
				v.othersLive()
			})
		}
	}
}

// TestMPA_42_43_AnySegmentation: how the octets are segmented makes no difference.
func TestMPA_42_43_AnySegmentation(t *testing.T) {
	feed := func(t *testing.T, parts func(wire []byte) [][]byte) {
		synctest.Test(t, func(t *testing.T) {
			v := newVictim(t, iwarp.QPConfig{})
			v.works()
			steps := v.conversation()
			wire := join(steps)
			for _, part := range parts(wire) {
				v.p.Write(part)
				synctest.Wait()
			}
			v.p.WantSegment("the peer's Read is answered", "c1 42 00000001 0000000000000000", []byte(steps[0].data)...)
			v.p.Cut(false)
			v.p.WantEOF("gracefully")
			<-v.qp.Done()
			require.NoError(t, v.qp.Err())
			v.played(steps, len(wire))
			require.Equal(t, v.want, v.arena, "everything is placed")
			var wcs [3]iwarp.WC
			require.Equal(t, 2, v.cq.Poll(wcs[:]))
			require.NoError(t, errors.Join(wcs[0].Err(), wcs[1].Err()))
		})
	}
	feed(t, func(wire []byte) [][]byte { return [][]byte{wire} })
	feed(t, func(wire []byte) (parts [][]byte) {
		for i := range wire {
			parts = append(parts, wire[i:i+1])
		}
		return parts
	})
	const octets = 30 + 46 + 50 // no shorter than the first FPDUs
	for at := 1; at < octets; at++ {
		feed(t, func(wire []byte) [][]byte { return [][]byte{wire[:at], wire[at:]} })
	}
}

// TestMPA_33_44_46_84_EveryOctetCorrupted: with CRCs, corruption of any octet of a stream causes nothing wrong to be
// placed.
func TestMPA_33_44_46_84_EveryOctetCorrupted(t *testing.T) {
	total := 1
	for at := 0; at < total; at++ {
		for _, bits := range []byte{0x01, 0x80, 0xff} {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				v.works()
				steps := v.conversation()[:3]
				wire := join(steps)
				total = len(wire)
				wire[at] ^= bits
				v.p.Write(wire)
				v.p.Cut(false)
				<-v.qp.Done()
				whole := 0 // octets of the FPDUs in front of the damaged one
				for _, s := range steps {
					if whole+len(s.wire) > at {
						break
					}
					whole += len(s.wire)
				}
				v.played(steps, whole)
				require.Equal(t, v.want, v.arena, "octet %d is damaged by %02x", at, bits)
				require.ErrorIs(t, v.qp.Err(), net.ErrClosed)
			})
		}
	}
}
