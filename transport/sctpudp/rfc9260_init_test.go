package sctpudp

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// hostName is a Host Name Address, which no INIT may have.
var hostName = octets("000b 0006 6100 0000")

// TestINITWithAHostName is answered by an ABORT (RFC 9260 sections 3.3.2.1.4 and 5.1.2), wherever the parameter stands.
func TestINITWithAHostName(t *testing.T) {
	ddp := octets("c006 0008 00000001")
	for name, params := range map[string][]byte{"alone": hostName, "behind": join(ddp, hostName), "before": join(hostName, ddp)} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(x *victim) {
				x.answers()
				x.says(0, appendChunk(nil, chunkInit, 0, append(peerInit().appendFixed(nil), params...)))
				require.Equal(x, []uint32{5}, x.aborted())
			})
		})
	}
}

// TestINITACKThatCannotBeTaken ends a dial at once, and is answered by an ABORT (RFC 9260 sections 3.3.3 and 5.1).
func TestINITACKThatCannotBeTaken(t *testing.T) {
	theirs := peerInit()
	theirs.cookie = []byte("a cookie")
	noStreams := *theirs
	noStreams.outbound = 0
	for name, value := range map[string][]byte{
		"a host name": append(theirs.append(nil), hostName...),
		"no streams":  noStreams.append(nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHandshake()
				h.handshakePacket(packet(ports{9, 7}, h.ours.tag, chunkInitAck, 0, value), way{peer: h.peer.udp})
				start := time.Now()
				_, err := h.run(t.Context())
				require.ErrorIs(t, err, errInit)
				require.Zero(t, time.Since(start))
				sent := h.e.pc.(*void).packets
				require.Len(t, sent, 2)
				require.Equal(t, octets("06000004"), sent[1][headerSize:])
				require.Equal(t, theirs.tag, tagOf(sent[1]))
			})
		})
	}
}

// TestDialThatIsGivenUpBehindTheCookie: the peer, which may have an association, is told by an ABORT, unless that is what it has said.
func TestDialThatIsGivenUpBehindTheCookie(t *testing.T) {
	theirs := peerInit()
	theirs.cookie = []byte("a cookie")
	for name, c := range map[string]struct {
		limit  time.Duration
		answer []byte
		aborts int
	}{
		"the caller has no more time": {time.Second, nil, 1},
		"no answer":                   {time.Hour, nil, 1},
		"refused":                     {time.Hour, appendChunk(nil, chunkAbort, 0, nil), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHandshake()
				at := way{peer: h.peer.udp}
				h.handshakePacket(packet(ports{9, 7}, h.ours.tag, chunkInitAck, 0, theirs.append(nil)), at)
				if c.answer != nil {
					p := join(make([]byte, headerSize), c.answer)
					seal(p, ports{9, 7}, h.ours.tag)
					h.handshakePacket(p, at)
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				_, err := h.run(ctx)
				require.Error(t, err)
				x := &victim{T: t, v: h.e.pc.(*void)}
				sent := x.v.packets
				require.Len(t, x.chunks(chunkAbort), c.aborts)
				if c.aborts > 0 {
					last := sent[len(sent)-1]
					require.Equal(t, octets("06000004"), last[headerSize:])
					require.Equal(t, theirs.tag, tagOf(last))
				}
			})
		})
	}
}

// TestParametersThatAreNotKnownAreReported, if the upper bits of their types ask for that: in the INIT ACK (RFC 9260
// sections 3.2.1 and 3.2.2).
func TestParametersThatAreNotKnownAreReported(t *testing.T) {
	for name, c := range map[string]struct{ params, reports string }{
		"00: nothing behind it counts":                     {"3fff 0004 c000 0004", ""},
		"01: nothing behind it counts, and it is reported": {"7fff 0005 aa000000 c000 0004", "0008 0009 7fff 0005 aa000000"},
		"10: it is skipped":                                {"8008 0006 c1800000", ""},
		"11: it is skipped, and reported":                  {"c000 0004 8000 0004 ffff 0008 01020304", "0008 0008 c000 0004 0008 000c ffff 0008 01020304"},
		"those that are known":                             {"000c 0006 00050000 0005 0008 7f000001 0009 0008 00000001", ""},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(x *victim) {
				x.answers()
				value := peerInit().append(nil)
				x.says(0, appendChunk(nil, chunkInit, 0, append(value, octets(c.params)...)))
				acks := x.chunks(chunkInitAck)
				require.Len(x, acks, 1)
				got := ""
				for b := acks[0][chunkHeaderSize+initSize:]; len(b) > 0; {
					n := int(binary.BigEndian.Uint16(b[2:]))
					if binary.BigEndian.Uint16(b) == 8 {
						got += string(b[:min(pad(n), len(b))])
					}
					b = b[min(pad(n), len(b)):]
				}
				require.Equal(x, string(octets(c.reports)), got)
				theirs, err := parseInit(acks[0][chunkHeaderSize:])
				require.NoError(x, err)
				x.says(theirs.tag, appendChunk(nil, chunkCookieEcho, 0, theirs.cookie))
				require.Len(x, x.chunks(chunkCookieAck), 1)
			})
		})
	}
	t.Run("more than the answer has room for", func(t *testing.T) {
		for _, size := range []int{0, maxReports/2 - 8, maxReports - 16, maxReports} {
			guarded(t, func(x *victim) {
				value := peerInit().append(nil)
				for len(value)+paramSize+size < 4000 {
					value = appendParam(value, 0xc000, make([]byte, size))
				}
				x.answers()
				x.says(0, appendChunk(nil, chunkInit, 0, value))
				got := x.answers()
				require.Len(x, got, 1)
				require.LessOrEqual(x, len(got[0]), minPath-ip6HeaderSize-udpHeaderSize)
			})
		}
	})
}

// TestSCTP_36_StreamsOfAnINITACK are as many each way, and no more than the peer takes (RFC 9260 section 3.3.3).
func TestSCTP_36_StreamsOfAnINITACK(t *testing.T) {
	for _, c := range [][3]uint16{{10, 0xffff, 10}, {0xffff, 10, 10}, {3, 5, 3}, {0xffff, 0xffff, maxStreams}} {
		guarded(t, func(x *victim) {
			x.answers()
			init := peerInit()
			init.outbound, init.inbound = c[0], c[1]
			x.says(0, appendChunk(nil, chunkInit, 0, init.append(nil)))
			acks := x.chunks(chunkInitAck)
			require.Len(x, acks, 1)
			ours, err := parseInit(acks[0][chunkHeaderSize:])
			require.NoError(x, err)
			require.Equal(x, [2]uint16{c[2], c[2]}, [2]uint16{ours.outbound, ours.inbound})
			x.says(ours.tag, appendChunk(nil, chunkCookieEcho, 0, ours.cookie))
			require.EqualValues(x, c[2], x.l.e.associations()[0].pairs)
		})
	}
}

// TestParametersOfAnINITACKThatAreNotKnown are reported with the cookie (RFC 9260 section 3.2.2), which comes first.
func TestParametersOfAnINITACKThatAreNotKnown(t *testing.T) {
	for name, c := range map[string]struct {
		cookie int
		params string
		want   string
	}{
		"one":                          {4, "c000 0004", "0a00 0008 00000000 0900 000c 0008 0008 c000 0004"},
		"two, of odd lengths":          {4, "c001 0005 aa000000 c002 0006 bbcc", "0a00 0008 00000000 0900 001a 0008 0009 c001 0005 aa000000 0008 000a c002 0006 bbcc 0000"},
		"a cookie that leaves no room": {1208, "c000 0004", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHandshake()
				theirs := peerInit()
				theirs.cookie = make([]byte, c.cookie)
				at := way{peer: h.peer.udp}
				h.handshakePacket(packet(ports{9, 7}, h.ours.tag, chunkInitAck, 0, append(theirs.append(nil), octets(c.params)...)), at)
				h.handshakePacket(packet(ports{9, 7}, h.ours.tag, chunkCookieAck, 0, nil), at)
				_, err := h.run(t.Context())
				require.NoError(t, err)
				sent := h.e.pc.(*void).packets
				require.Len(t, sent, 2)
				require.True(t, valid(sent[1]))
				if c.want != "" {
					require.Equal(t, octets(c.want), sent[1][headerSize:])
				}
				require.Equal(t, c.want != "", kindsOf(sent[1]).has(chunkError))
			})
		})
	}
}
