package sctpudp

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mostPerOctet is how many octets an address gets at most for one that claims to come from it, before it has proved to be
// there: an INIT of 40 octets is answered by 140, for the cookie carries the state of an association. With the headers of
// IP and UDP that is less than the 3 of QUIC (RFC 9000 section 8.1).
const mostPerOctet = 3.5

// TestAttackAmplification: packets whose source is forged, and so is the address that is answered.
func TestAttackAmplification(t *testing.T) {
	p := newPair(t)
	p.works()
	at := ports{5001, p.l.e.addr.Port}
	init := initiation{tag: 1, window: 1 << 20, outbound: 10, inbound: 10}
	withDDP := init
	withDDP.adaptation = 1
	strange := withDDP
	strange.reports = bytes.Repeat(octets("c000 0004"), 200)
	good := map[string]bool{"INIT": true, "INIT of DDP": true, "INIT to be reported on": true}
	for name, b := range map[string][]byte{
		"INIT":                    packet(at, 0, chunkInit, 0, init.append(nil)),
		"INIT of DDP":             packet(at, 0, chunkInit, 0, withDDP.append(nil)),
		"INIT to be reported on":  packet(at, 0, chunkInit, 0, strange.append(nil)),
		"INIT that is malformed":  packet(at, 0, chunkInit, 0, init.append(nil)[:8]),
		"ABORT":                   packet(at, 7, chunkAbort, 0, nil),
		"DATA of no association":  packet(at, 7, chunkData, 7, make([]byte, 13)),
		"HEARTBEAT of none":       packet(at, 7, chunkHeartbeat, 0, make([]byte, 1000)),
		"COOKIE ECHO of nothing":  packet(at, 7, chunkCookieEcho, 0, make([]byte, cookieSize)),
		"SHUTDOWN ACK of nothing": packet(at, 7, chunkShutdownAck, 0, nil),
		"a chunk that is unknown": packet(at, 7, 0xff, 0, make([]byte, 64)),
	} {
		t.Run(name, func(t *testing.T) {
			p.forge(b)
			p.forge(packet(at, 0, chunkInit, 0, init.append(nil))) // whose answer is the last one
			acks := 1
			if good[name] {
				acks = 2
			}
			got := 0
			for answer := make([]byte, 9000); ; {
				require.NoError(t, p.forger.SetReadDeadline(time.Now().Add(10*time.Second)))
				n, err := p.forger.Read(answer)
				require.NoError(t, err)
				if answer[headerSize] == chunkInitAck {
					acks--
				}
				if acks == 0 {
					break
				}
				got += n
			}
			require.LessOrEqual(t, float64(got), mostPerOctet*float64(len(b)))
		})
	}
	p.works()
	require.Equal(t, 1, p.l.e.count(), "nothing is kept of them")
}
