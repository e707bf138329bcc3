package iwarp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// TestMPA_33_44_81_84_85_DamagedFPDU: no part of it is placed, nothing after it is processed, and our half still carries
// the Terminate. The Terminate omits the DDP header, which may be damaged.
func TestMPA_33_44_81_84_85_DamagedFPDU(t *testing.T) {
	damaged := func(name string, code transport.Code, wire func(b []byte) []byte) attack {
		return attack{
			name: name, code: code, tells: wiretest.NoHeader,
			segment: func(v *victim) []byte { return wiretest.Write(v.mr.STag(), regionTO, "good or bad") },
			wire:    wire,
		}
	}
	flip := func(at int, bits byte) func([]byte) []byte {
		return func(b []byte) []byte {
			b = wiretest.FPDU(b)
			b[(at+len(b))%len(b)] ^= bits
			return b
		}
	}
	list := []attack{
		damaged("the payload", 0x2002, flip(20, 0x01)),
		damaged("the STag", 0x2002, flip(5, 0x80)),
		damaged("the TO", 0x2002, flip(10, 0x01)),
		damaged("the PAD", 0x2002, flip(-5, 0x01)),
		damaged("the first octet of the CRC", 0x2002, flip(-4, 0x01)),
		damaged("the last octet of the CRC", 0x2002, flip(-1, 0x80)),
		damaged("a length that is too small", 0x2002, flip(1, 0x09)),
		damaged("a length that reaches into the next FPDU", 0x2002, flip(1, 0x20)),
	}
	for _, n := range []int{0, 1, 13} { // with a good CRC
		list = append(list, damaged(fmt.Sprintf("a ULPDU of %d octets", n), 0x2003, func(b []byte) []byte { return wiretest.FPDU(b[:n]) }))
	}
	attacks(t, list)
}

// TestMPA_70_FirstFPDUIsDamaged: a responder that has received no FPDU yet may not send one, not even to report why it
// ends.
func TestMPA_70_FirstFPDUIsDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLonelyVictim(t)
		v.p, v.qp = initiator(t, v.rnic, "pipe", &iwarp.QPConfig{PD: v.pd})
		bad := wiretest.FPDU(wiretest.Write(v.mr.STag(), regionTO, "bad"))
		bad[20] ^= 1
		v.p.Write(bad)
		v.p.WantClosed("nothing is sent")
		<-v.qp.Done()
		v.wantCause(v.qp.Err(), attack{code: 0x2002})
		require.Equal(t, v.want, v.arena, "nothing was placed")
		v.othersLive()
	})
}

// TestMPA_19_20_82_84_85_WrongMarker: the CRC is right, so the peer sent this Marker.
func TestMPA_19_20_82_84_85_WrongMarker(t *testing.T) {
	right := func(ptr uint16) uint16 { return ptr }
	for name, x := range map[string]struct {
		size int // of the payload
		bend func(uint16) uint16
		bad  bool
	}{
		"right":                  {600, right, false},
		"in front of the header": {600, func(ptr uint16) uint16 { return max(ptr, 4) }, true},
		"within the payload":     {600, func(ptr uint16) uint16 { return ptr ^ min(ptr, 8) }, true},
		"zero within":            {600, func(uint16) uint16 { return 0 }, true},
		"beyond the FPDU":        {600, func(ptr uint16) uint16 { return ptr | 0xfff0 }, true},
		"low bits do not count":  {600, func(ptr uint16) uint16 { return ptr | 3 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newLonelyVictim(t)
				mem, mr := v.register(x.size, stag.LocalWrite|stag.RemoteWrite, nil)
				var cr *iwarp.ConnRequest
				v.p, cr = requester(t, v.rnic, "pipe", wiretest.Hex("40 01 00 00"))
				qp, err := cr.Accept(testContext(t), &iwarp.QPConfig{PD: v.pd, MPA: iwarp.MPAOptions{Markers: true}})
				require.NoError(t, err)
				v.qp = qp
				v.p.WantReply("the Reply asks for Markers", "c0 01 00 00")

				hello := wiretest.Marked(0, wiretest.Write(0, 0, ""), right)
				data := wiretest.Marked(len(hello), wiretest.Write(mr.STag(), 0, strings.Repeat("m", x.size)), x.bend)
				if name == "in front of the header" { // the first Marker of all
					hello = nil
					data = wiretest.Marked(0, wiretest.Write(mr.STag(), 0, strings.Repeat("m", x.size)), x.bend)
				}
				v.p.Write(append(hello, data...))
				synctest.Wait()
				if !x.bad {
					require.Equal(t, strings.Repeat("m", x.size), string(mem), "the Write is placed, without the Markers")
					require.NoError(t, qp.Abort())
					return
				}
				if hello == nil {
					v.p.WantClosed("a responder that has had no FPDU sends none")
				} else {
					require.Equal(t, wiretest.Terminate(0x2003, wiretest.NoHeader, nil), v.p.Segment())
					v.p.WantEOF("the Terminate is the last message")
				}
				v.p.Close()
				<-qp.Done()
				v.wantCause(qp.Err(), attack{code: 0x2003})
				require.Equal(t, make([]byte, x.size), mem, "nothing was placed")
				v.othersLive()
			})
		})
	}
}
