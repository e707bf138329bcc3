package iwarp

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestRDMAP_72_76_BadTerminateIsNotAnswered: no Terminate is answered by one, but the
// stream ends and the application is told.
func TestRDMAP_72_76_BadTerminateIsNotAnswered(t *testing.T) {
	for name, bad := range map[string][]byte{
		"MSN 2":            untagged(0x41, 0x47, 0, 2, 2, 0, "\x11\x00\x00\x00"),
		"MO 1":             untagged(0x41, 0x47, 0, 2, 1, 1, "\x11\x00\x00\x00"),
		"without L":        untagged(0x01, 0x47, 0, 2, 1, 0, "\x11\x00\x00\x00"),
		"no header":        untagged(0x41, 0x47, 0, 2, 1, 0, ""),
		"three octets":     untagged(0x41, 0x47, 0, 2, 1, 0, "\x11\x00\x00"),
		"longer than ever": untagged(0x41, 0x47, 0, 2, 1, 0, "\x11\x00\xe0\x00"+string(make([]byte, 49))),
		"on QN 0":          untagged(0x41, 0x47, 0, 0, 1, 0, "\x11\x00\x00\x00"),
		"on QN 1":          untagged(0x41, 0x47, 0, 1, 1, 0, "\x11\x00\x00\x00"),
		"tagged":           tagged(0xc1, 0x47, 0, 0, "\x11\x00\x00\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, QPConfig{})
				v.works()
				v.p.writes(fpdu(bad))
				v.p.wantEnd("no Terminate is answered by one")
				require.NoError(t, v.p.c.Close())
				<-v.qp.Done()
				require.Equal(t, StateError, v.qp.State())
				require.ErrorIs(t, v.qp.Err(), net.ErrClosed)
				require.Equal(t, EventTerminated, (<-v.rnic.Events()).Kind, "the application is told")
				v.wantCompletions(attack{})
				require.Equal(t, v.want, v.arena, "nothing was placed")
				v.othersLive()
			})
		})
	}
}

// TestRDMAP_62_72_AnyTerminateIsTaken: what is in a Terminate can be anything.
func TestRDMAP_62_72_AnyTerminateIsTaken(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 4; n <= 52; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, QPConfig{})
				v.works()
				header := make([]byte, n)
				for i := range header {
					header[i] = byte(r.Uint32())
				}
				v.p.writes(fpdu(untagged(0x41, 0x47, 0, 2, 1, 0, string(header))))
				v.p.wantEnd("a Terminate ends the stream")
				require.NoError(t, v.p.c.Close())
				<-v.qp.Done()
				var te *TerminateError
				require.ErrorAs(t, v.qp.Err(), &te)
				require.True(t, te.Remote)
				require.ErrorIs(t, v.qp.Err(), net.ErrClosed)
				e := <-v.rnic.Events()
				require.Equal(t, EventTerminateReceived, e.Kind)
				require.Equal(t, v.want, v.arena, "nothing was placed")
				v.othersLive()
			})
		})
	}
}
