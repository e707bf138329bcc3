package iwarp_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// TestRDMAP_72_76_BadTerminateIsNotAnswered: no Terminate is answered by a Terminate, but the stream ends and the
// application is told.
func TestRDMAP_72_76_BadTerminateIsNotAnswered(t *testing.T) {
	attackScript(t, "testdata/hostile/terminate.txt")
}

// TestRDMAP_62_72_AnyTerminateIsTaken: whatever its contents are.
func TestRDMAP_62_72_AnyTerminateIsTaken(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 4; n <= 52; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				v.works()
				header := make([]byte, n)
				for i := range header {
					header[i] = byte(r.Uint32())
				}
				v.p.Send(wiretest.Untagged(0x41, 0x47, 0, 2, 1, 0, string(header)))
				v.p.WantEOF("a Terminate ends the stream")
				v.p.Close()
				<-v.qp.Done()
				var te *iwarp.TerminateError
				require.ErrorAs(t, v.qp.Err(), &te)
				require.True(t, te.Remote)
				require.ErrorIs(t, v.qp.Err(), net.ErrClosed)
				e := <-v.rnic.Events()
				require.Equal(t, iwarp.EventTerminateReceived, e.Kind)
				require.Equal(t, v.want, v.arena, "nothing was placed")
				v.othersLive()
			})
		})
	}
}
