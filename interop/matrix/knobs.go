package matrix

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/interop/wire"
)

// knobDefaults are the constants of the stock siw.
var knobDefaults = []string{
	"mpa_crc_required=0", "mpa_crc_strict=0", "mpa_version=2", "peer_to_peer=0", "rtr_type=192", "try_gso=0",
}

// knobCases need the modified siw.
func knobCases() []Case {
	none := []string{}
	cases := slices.Concat(
		both(Case{Name: "knobs/default", Core: true, Knobs: none, Run: func(t *T) { t.withKnobs(setting{}, t.revision2) }}),
		both(Case{Name: "knobs/crc-required", Core: true, Knobs: []string{"mpa_crc_required=1"}, Run: (*T).crcRequired}),
		both(Case{Name: "knobs/crc-strict", Core: true, Knobs: []string{"mpa_crc_required=1", "mpa_crc_strict=1"}, Run: func(t *T) {
			t.withKnobs(setting{}, t.crcOn)
		}}),
		both(Case{Name: "knobs/gso", Core: true, Knobs: []string{"try_gso=1"}, Limit: 3 * time.Minute, Run: func(t *T) {
			t.setKnobs()
			t.writes(setting{})
			require.Greater(t, t.largestFPDU(), 1500, "siw's FPDUs are larger than a segment")
		}}),
		both(Case{Name: "knobs/gso-no-crc", Knobs: []string{"try_gso=1"}, Limit: 3 * time.Minute, Run: func(t *T) {
			t.setKnobs()
			t.reads(setting{qc: noCRC})
		}}),
	)
	return append(cases,
		Case{Name: "knobs/revision-1/responder", Role: Responder, Core: true, Knobs: []string{"mpa_version=1"}, Run: func(t *T) {
			t.withKnobs(setting{}, func(request, reply [2]byte) {
				require.Equal(t, [2]byte{1, 1}, [2]byte{request[1], reply[1]}, "revisions of Request and Reply")
			})
		}},
		Case{Name: "knobs/rtr-write/responder", Role: Responder, Core: true, Knobs: []string{"peer_to_peer=1", "rtr_type=128"}, Run: func(t *T) {
			t.withKnobs(setting{}, t.revision2)
			require.EqualValues(t, rtrWrite, t.replyBits()&(rtrWrite|rtrRead), "our Reply takes siw's offer of a Write")
		}},
		Case{Name: "knobs/rtr-read/responder", Role: Responder, Core: true, Knobs: []string{"peer_to_peer=1", "rtr_type=64"}, Run: func(t *T) {
			t.withKnobs(setting{}, t.revision2)
			require.EqualValues(t, rtrRead, t.replyBits()&(rtrWrite|rtrRead), "our Reply takes siw's offer of a Read")
		}},
		Case{Name: "knobs/rtr-either/responder", Role: Responder, Core: true, Knobs: []string{"peer_to_peer=1"}, Run: func(t *T) {
			t.withKnobs(setting{}, t.revision2)
		}},
		Case{Name: "knobs/rtr-write/initiator", Role: Initiator, Core: true, Knobs: none, Run: func(t *T) {
			t.withKnobs(setting{}, t.revision2)
			require.EqualValues(t, rtrWrite, t.replyBits()&(rtrWrite|rtrRead), "siw's Reply asks us for a Write")
		}},
		Case{Name: "knobs/rtr-read/initiator", Role: Initiator, Core: true, Knobs: []string{"rtr_type=64"}, Wire: wire.Expect{RTR: new(wire.ReadRequest)}, Run: func(t *T) {
			t.withKnobs(setting{}, t.revision2)
			require.EqualValues(t, rtrRead, t.replyBits()&(rtrWrite|rtrRead), "siw's Reply asks us for a Read")
		}},
	)
}

// Bits of the fourth octet pair of an enhanced Reply, the one of ORD (RFC 6581 section 9).
const (
	rtrWrite = 0x8000
	rtrRead  = 0x4000
)

// replyBits returns the second half of the enhanced data of the Reply: its upper two
// bits name ready-to-receive messages, the rest is the ORD.
func (t *T) replyBits() int {
	b := t.capture.find(replyKey, 8)
	require.Len(t, b, 8, "flags, revision, length, IRD and ORD of the Reply")
	return int(b[6])<<8 | int(b[7])
}

func (t *T) revision2(request, reply [2]byte) {
	require.Equal(t, [2]byte{2, 2}, [2]byte{request[1], reply[1]}, "revisions of Request and Reply")
}

func (t *T) crcOn(request, reply [2]byte) {
	require.NotZero(t, (request[0]|reply[0])&flagCRC, "CRC in use: Request %x, Reply %x", request, reply)
}

// crcRequired makes siw require the CRC, which our end does not request. As the initiator siw requests
// it; as the responder it looks only at the Request, which does not.
func (t *T) crcRequired() {
	t.withKnobs(setting{qc: noCRC}, func(request, reply [2]byte) {
		used := (request[0]|reply[0])&flagCRC != 0
		require.Equal(t, t.Role == Responder, used, "CRC in use: Request %x, Reply %x", request, reply)
	})
}

// setKnobs sets the parameters of the modified siw for this case.
func (t *T) setKnobs() {
	for _, k := range slices.Concat(knobDefaults, t.Knobs) {
		name, value, _ := strings.Cut(k, "=")
		file := filepath.Join("/sys/module/siw/parameters", name)
		require.NoError(t, os.WriteFile(file, []byte(value), 0o600), "set siw's %s", k)
	}
}

// withKnobs holds a conversation and checks the startup frames.
func (t *T) withKnobs(s setting, check func(request, reply [2]byte)) {
	t.setKnobs()
	e, p := t.connect(s)
	t.exchange(e, p)
	check(t.startup())
}
