package iwarp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// TestMPA_33_44_81_84_85_DamagedFPDU: nothing of it is placed, nothing behind it is
// looked at, and our half still carries the Terminate. The DDP header, which may be
// damaged, is not told.
func TestMPA_33_44_81_84_85_DamagedFPDU(t *testing.T) {
	damaged := func(name string, code transport.Code, wire func(b []byte) []byte) attack {
		return attack{
			name: name, code: code, tells: tellsNothing,
			segment: func(v *victim) []byte { return write(v.mr.STag(), regionTO, "good or bad") },
			wire:    wire,
		}
	}
	flip := func(at int, bits byte) func([]byte) []byte {
		return func(b []byte) []byte {
			b = fpdu(b)
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
		list = append(list, damaged(fmt.Sprintf("a ULPDU of %d octets", n), 0x2003, func(b []byte) []byte { return fpdu(b[:n]) }))
	}
	attacks(t, list)
}

// TestMPA_70_FirstFPDUIsDamaged: a responder that has had no FPDU yet may not send
// one, not even to say why it ends.
func TestMPA_70_FirstFPDUIsDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLonelyVictim(t)
		v.p, v.qp = initiator(t, v.rnic, "pipe", &QPConfig{PD: v.pd})
		bad := fpdu(write(v.mr.STag(), regionTO, "bad"))
		bad[20] ^= 1
		v.p.writes(bad)
		v.p.wantGone("nothing is sent")
		<-v.qp.Done()
		v.wantCause(v.qp.Err(), attack{code: 0x2002})
		require.Equal(t, v.want, v.arena, "nothing was placed")
		v.othersLive()
	})
}

// wantGone waits for the end of the connection, graceful or not, without an octet.
func (p *peer) wantGone(expectation string) {
	p.Helper()
	n, err := p.c.Read(make([]byte, 1))
	require.Zero(p, n, expectation)
	require.True(p, errors.Is(err, io.EOF) || isReset(err), "%s: %v", expectation, err)
}

func isReset(err error) bool { return strings.Contains(err.Error(), syscall.ECONNRESET.Error()) }

// marked frames a ULPDU with Markers; pos is where in the stream the FPDU begins.
// bend may falsify what a Marker says.
func marked(pos int, ulpdu []byte, bend func(ptr uint16) uint16) []byte {
	plain := fpdu(ulpdu)
	var out []byte
	header := -1
	put := func(octets []byte) {
		for _, b := range octets {
			if (pos+len(out))%512 == 0 {
				ptr := uint16(0)
				if header >= 0 {
					ptr = uint16(len(out) - header)
				}
				out = binary.BigEndian.AppendUint32(out, uint32(bend(ptr)))
			}
			if header < 0 {
				header = len(out)
			}
			out = append(out, b)
		}
	}
	put(plain[:len(plain)-4])
	crc := crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli))
	put(binary.LittleEndian.AppendUint32(nil, crc))
	return out
}

// TestMPA_19_20_82_84_85_WrongMarker: its CRC is right, so it was sent like this.
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
				var cr *ConnRequest
				v.p, cr = requester(t, v.rnic, "pipe", hx("40 01 00 00"))
				qp, err := cr.Accept(testContext(t), &QPConfig{PD: v.pd, MPA: MPAOptions{Markers: true}})
				require.NoError(t, err)
				v.qp = qp
				v.p.wantOctets("the Reply asks for Markers", append([]byte(replyKey), hx("c0 01 00 00")...))

				hello := marked(0, write(0, 0, ""), right)
				data := marked(len(hello), write(mr.STag(), 0, strings.Repeat("m", x.size)), x.bend)
				if name == "in front of the header" { // the first Marker of all
					hello = nil
					data = marked(0, write(mr.STag(), 0, strings.Repeat("m", x.size)), x.bend)
				}
				v.p.writes(append(hello, data...))
				synctest.Wait()
				if !x.bad {
					require.Equal(t, strings.Repeat("m", x.size), string(mem), "the Write is placed, without the Markers")
					require.NoError(t, qp.Abort())
					return
				}
				if hello == nil {
					v.p.wantGone("a responder that has had no FPDU sends none")
				} else {
					require.Equal(t, terminate(0x2003, tellsNothing, nil), v.p.segment())
					v.p.wantEnd("the Terminate is the last message")
				}
				require.NoError(t, v.p.c.Close())
				<-qp.Done()
				v.wantCause(qp.Err(), attack{code: 0x2003})
				require.Equal(t, make([]byte, x.size), mem, "nothing was placed")
				v.othersLive()
			})
		})
	}
}
