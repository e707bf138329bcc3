package iwarp_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// RFC 5041 section 6.2: how a DDP stream ends.

// A scriptedSession is a pair of SCTP streams whose peer the test plays.
type scriptedSession struct {
	in   chan sessionMessage
	wake chan struct{}

	mu       sync.Mutex
	sent     []sessionMessage
	released []bool
}

type sessionMessage struct {
	ppid uint32
	msg  []byte
}

func (s *scriptedSession) Send(ppid uint32, msg []byte, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, sessionMessage{ppid, append([]byte(nil), msg...)})
	return nil
}

func (s *scriptedSession) Receive(p []byte) (int, uint32, error) {
	select {
	case m := <-s.in:
		return copy(p, m.msg), m.ppid, nil
	case <-s.wake:
		return 0, 0, transport.ErrWoken
	}
}

func (s *scriptedSession) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *scriptedSession) Release(clean bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, clean)
}

func (*scriptedSession) Room(<-chan struct{})       {}
func (*scriptedSession) Acked(<-chan struct{}) bool { return true }
func (*scriptedSession) MaxMessage() int            { return 1450 }
func (*scriptedSession) LocalAddr() net.Addr        { return &net.IPAddr{} }
func (*scriptedSession) RemoteAddr() net.Addr       { return nil }

// says makes the peer send msg as message ssn of its half of the session.
func (s *scriptedSession) says(ppid uint32, ssn uint16, msg []byte) {
	s.in <- sessionMessage{ppid, append(binary.BigEndian.AppendUint16(nil, ssn), msg...)}
}

// TestDDP_56_DataAfterTheEndOfTheLowerLayer: the peer has ended its half of the session gracefully, and sends all the
// same. The stream is torn down abortively, in whatever order the two arrive, and data after the end is not delivered.
// TCP itself delivers nothing after a FIN.
func TestDDP_56_DataAfterTheEndOfTheLowerLayer(t *testing.T) {
	first, end := wiretest.Send(1, 0, "first"), []byte{0, 4} // the Terminate message of RFC 5043
	behind := wiretest.Send(2, 0, "behind the end")
	for name, says := range map[string]func(*scriptedSession){
		"the data overtakes the end": func(s *scriptedSession) {
			s.says(sctp.PPIDSegment, 1, first)
			s.says(sctp.PPIDSegment, 3, behind)
			s.says(sctp.PPIDControl, 2, end)
		},
		"the end overtakes what was before it": func(s *scriptedSession) {
			s.says(sctp.PPIDControl, 2, end)
			s.says(sctp.PPIDSegment, 3, behind)
			s.says(sctp.PPIDSegment, 1, first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				session := &scriptedSession{in: make(chan sessionMessage, 8), wake: make(chan struct{}, 1)}
				session.says(sctp.PPIDControl, 0, []byte{0, 2}) // accepts
				conn, _, err := sctp.Connect(t.Context(), session, sctp.Options{Plain: true}, 1, 1, nil)
				require.NoError(t, err)
				says(session)

				s := newSide(t, nil)
				_, mr := s.register(64, stag.LocalWrite, nil)
				cq, err := s.rnic.CreateCQ(256)
				require.NoError(t, err)
				s.qp = iwarp.Establish(t, s.rnic, conn, &iwarp.QPConfig{PD: s.pd, SendCQ: cq, RecvCQ: cq, Setup: func(_ context.Context, qp *iwarp.QP) error {
					return qp.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{mr.Slice(0, 32)}}, iwarp.RecvWR{ID: 2, Local: []iwarp.SGE{mr.Slice(32, 32)}})
				}}, &enhanced.Agreed{IRD: 1, ORD: 1})
				<-s.qp.Done()
				require.Equal(t, iwarp.StateError, s.qp.State())
				var violation *sctp.ViolationError
				require.ErrorAs(t, s.qp.Err(), &violation, "the reason is told")
				s.wantEvent(iwarp.EventConnectionLost)
				s.wantAllRefused(violation)
				wcs := s.completes(cq, 2)
				require.Equal(t, iwarp.StatusFlushed, wcs[1].Status, "no receive gets what is after the end")

				time.Sleep(time.Minute) // the peer may end its half
				synctest.Wait()
				session.mu.Lock()
				defer session.mu.Unlock()
				require.Equal(t, []bool{false}, session.released, "the streams do not serve another session")
			})
		})
	}
}
