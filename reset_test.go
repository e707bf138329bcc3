package iwarp_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// TestMessagesBeforeAResetAreDelivered: also messages that wait for a receive, and although work of this side fails.
func TestMessagesBeforeAResetAreDelivered(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, early := range []int{20, 5} {
			t.Run(fmt.Sprintf("plain %v, %d receives before it", plain, early), func(t *testing.T) {
				s := newSide(t, &iwarp.Config{PlainIO: plain})
				cq, err := s.rnic.CreateCQ(64)
				require.NoError(t, err)
				_, mr := s.register(1000, stag.LocalWrite, nil)
				p, qp := responder(t, s.rnic, "tcp", &iwarp.QPConfig{
					PD: s.pd, RecvCQ: cq, RecvDepth: 20, RNRWait: iwarp.RNRWaitForever,
				})
				post := func(n int) {
					for range n {
						require.NoError(t, qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{mr.Slice(0, 1000)}}))
					}
				}
				post(early)
				for msn := range uint32(20) {
					p.Send(wiretest.Send(msn+1, 0, string(make([]byte, 900))))
				}
				require.NoError(t, p.Conn.(*net.TCPConn).SetLinger(0))
				p.Close()
				_ = qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}) // the QP refuses it if the reset has been seen
				got := s.completes(cq, early)
				post(20 - early)
				got = append(got, s.completes(cq, 20-early)...)
				for i := range got {
					require.Equal(t, iwarp.StatusSuccess, got[i].Status, "message %d", i)
				}
				<-qp.Done()
				require.ErrorContains(t, qp.Err(), "connection lost")
			})
		}
	}
}
