package sctpudp

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// join makes one run of chunks of several.
func join(chunks ...[]byte) (all []byte) {
	for _, c := range chunks {
		all = append(all, c...)
	}
	return all
}

// answers takes the packets that the victim has sent.
func (x *victim) answers() [][]byte {
	synctest.Wait()
	x.v.mu.Lock()
	defer x.v.mu.Unlock()
	all := x.v.packets
	x.v.packets = nil
	return all
}

// TestPacketsOutOfTheBlue follow RFC 9260 section 8.4, and section 8.5.1 where they have no tag.
func TestPacketsOutOfTheBlue(t *testing.T) {
	const tag = 9
	sack := appendChunk(nil, chunkSack, 0, make([]byte, 12))
	abort := appendChunk(nil, chunkAbort, 0, nil)
	payload := data(flagsMessage, 1, 3, sctp.PPIDSegment, octets("0000 41"))
	shutdownAck := appendChunk(nil, chunkShutdownAck, 0, nil)
	for name, c := range map[string]struct {
		tag    uint32
		chunks []byte
		answer []byte // nil: none
	}{
		"DATA":                             {tag, payload, octets("06010004")},
		"an ABORT":                         {tag, abort, nil},
		"an ABORT behind a SACK":           {tag, join(sack, abort), nil},
		"an ABORT behind an ERROR":         {tag, join(appendChunk(nil, chunkError, 0, octets("000d0004")), abort), nil},
		"an ABORT behind a SHUTDOWN ACK":   {tag, join(shutdownAck, abort), nil},
		"an ABORT behind a COOKIE ECHO":    {tag, join(appendChunk(nil, chunkCookieEcho, 0, []byte("none")), abort), nil},
		"a SHUTDOWN ACK":                   {tag, shutdownAck, octets("0e010004")},
		"a SHUTDOWN ACK behind a SACK":     {tag, join(sack, shutdownAck), octets("0e010004")},
		"a SHUTDOWN COMPLETE":              {tag, appendChunk(nil, chunkShutdownComplete, 0, nil), nil},
		"a COOKIE ACK with DATA":           {tag, join(appendChunk(nil, chunkCookieAck, 0, nil), payload), nil},
		"DATA without a tag":               {0, payload, nil},
		"a SHUTDOWN ACK without a tag":     {0, shutdownAck, nil},
		"an INIT behind something, no tag": {0, join(sack, appendChunk(nil, chunkInit, 0, peerInit().append(nil))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(x *victim) {
				x.answers()
				x.says(c.tag, c.chunks)
				got := x.answers()
				require.NoError(x, x.failure())
				if c.answer == nil {
					require.Empty(x, got)
					return
				}
				require.Len(x, got, 1)
				require.Equal(x, c.answer, got[0][headerSize:])
				require.EqualValues(x, tag, tagOf(got[0]), "it is reflected")
			})
		})
	}
	t.Run("a port that no packet may have", func(t *testing.T) {
		guarded(t, func(x *victim) {
			x.answers()
			x.v.in <- packet(ports{7, 0}, tag, chunkHeartbeat, 0, octets("00010004"))
			require.Empty(x, x.answers())
		})
	})
}

// peerInit is what a peer of eight streams says of itself.
func peerInit() *initiation {
	return &initiation{tag: 5, window: receiveBuffer, outbound: 8, inbound: 8}
}

// TestAbortBehindAnotherChunkRefusesADial: control chunks may come before it (RFC 9260 section 3.3.7).
func TestAbortBehindAnotherChunkRefusesADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandshake()
		p := join(make([]byte, headerSize), appendChunk(nil, chunkError, 0, octets("00040004")), appendChunk(nil, chunkAbort, 0, nil))
		seal(p, ports{9, 7}, h.ours.tag)
		h.handshakePacket(p, way{peer: h.peer.udp})
		start := time.Now()
		_, err := h.run(t.Context())
		require.ErrorContains(t, err, "refused")
		require.Zero(t, time.Since(start))
	})
}

// newHandshake is one whose packets nothing takes.
func newHandshake() *handshake {
	return &handshake{
		e: &endpoint{pc: newVoid(), addr: Addr{Port: 7}}, peer: peer{netip.MustParseAddrPort("192.0.2.1:9"), 9},
		ours: newInitiation(), in: make(chan []byte, handshakeBacklog),
	}
}
