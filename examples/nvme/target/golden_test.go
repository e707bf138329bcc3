package target

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
)

// Offsets in an MPA frame of Linux.
const (
	flagsAt  = 16
	depthsAt = 20 // IRD and ORD
	cntlidAt = 32 // of an I/O queue
)

// TestNVME_1_CapturedSetUps: each Request of both captures gets the Reply of the kernel's target: to the octet if the
// target is configured like it, and otherwise except for C, IRD and ORD.
func TestNVME_1_CapturedSetUps(t *testing.T) {
	items, err := golden.Load()
	require.NoError(t, err)
	for _, c := range []struct {
		cfg Config
		crc byte
		ord uint16
	}{
		{Config{NoCRC: true, ORD: 128}, 0, 128},
		{Config{}, 0x40, 16},
	} {
		virtual(t, func(t *testing.T) {
			w := newWorld(t, "pipe", &c.cfg, nil)
			s := newHost(t, w.addr).connect(0)
			n := 0
			var request []byte
			for _, i := range items {
				switch i.Name {
				case golden.MPARequest:
					request = append([]byte(nil), i.Octets...)
					if binary.LittleEndian.Uint16(request[cntlidAt:]) != 0 { // the controller is another one here
						binary.LittleEndian.PutUint16(request[cntlidAt:], s.cntlid)
					}
				case golden.MPAReply:
					want := append([]byte(nil), i.Octets...)
					want[flagsAt] |= c.crc
					require.EqualValues(t, 128, binary.BigEndian.Uint16(want[depthsAt+2:]), "of the kernel")
					binary.BigEndian.PutUint16(want[depthsAt+2:], c.ord)
					require.Equal(t, want, w.reply(w.raw(), request), "connection %d, queue %d", i.Conn, i.Queue)
					n++
				}
			}
			require.Greater(t, n, 5)
			require.EqualValues(t, 1+n, w.settled().Connections)
		})
	}
}

// TestNVME_7_CapturedRequestChanged: an error in the private data of a captured Request is answered with a Reject, whose
// private data is that of the specification.
func TestNVME_7_CapturedRequestChanged(t *testing.T) {
	items, err := golden.Load()
	require.NoError(t, err)
	request := items[0].Octets
	require.Equal(t, golden.MPARequest, items[0].Name)
	for want, change := range map[capsule.RejectStatus]func(p []byte){
		capsule.RejectRecFmt:  func(p []byte) { p[0] = 1 },
		capsule.RejectQID:     func(p []byte) { p[3] = 1 },
		capsule.RejectHSQSize: func(p []byte) { p[6] = 0 },
		capsule.RejectHRQSize: func(p []byte) { p[4] = 1 },
		capsule.RejectCNTLID:  func(p []byte) { p[2], p[8] = 1, 77 },
	} {
		virtual(t, func(t *testing.T) {
			w := newWorld(t, "pipe", nil, nil)
			p := append([]byte(nil), request...)
			change(p[depthsAt+4:])
			r := w.reply(w.raw(), p)
			require.EqualValues(t, 0x20, r[flagsAt]&0x20, "R")
			require.Equal(t, want.Append(nil), r[depthsAt+4:], "%v", want)
			require.EqualValues(t, 1, w.settled().Rejected)
		})
	}
}
