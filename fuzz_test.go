package iwarp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// FuzzReceive sends anything to a QP that has regions, a receive and an RDMA Read
// posted. Whatever comes, no octet outside them changes, every work request completes
// once, the QP ends when its peer does, and the other QPs of the RNIC go on.
//
// The first octet of the input says whether the rest is octets of the TCP stream (odd)
// or segments, each with its length in front, which are framed for it (even). STags
// 1 to 6 in segments stand for the STags of the victim's regions.
func FuzzReceive(f *testing.F) {
	for _, s := range fuzzSegments() {
		f.Add(script(s))
	}
	f.Add(script(fuzzSegments()...))
	f.Add(append([]byte{1}, wiretest.FPDU(wiretest.Write(0, 0, ""))...))
	f.Add([]byte{1, 0xff, 0xff, 1, 2, 3})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) == 0 || len(input) > 32<<10 {
			t.Skip("nothing, or more than what the connection holds")
		}
		synctest.Test(t, func(t *testing.T) { fuzzReceive(t, input) })
	})
}

// fuzzSegments are one of each kind, good and bad.
func fuzzSegments() [][]byte {
	sixteen := strings.Repeat("r", sinkLen)
	return [][]byte{
		wiretest.Write(1, regionTO, "good"),
		wiretest.Write(1, regionTO+regionLen-1, "bad"),
		wiretest.Write(1, math.MaxUint64, "bad"),
		wiretest.Write(2, 0, "bad"),
		wiretest.Write(4, 0, "shared"),
		wiretest.Write(5, regionTO, "bad"),
		wiretest.Write(6, regionTO, "bad"),
		wiretest.Tagged(0x81, 0x40, 1, regionTO, "more"),
		wiretest.ReadResponse(0xc1, 3, 0, sixteen),
		wiretest.ReadResponse(0x81, 3, 0, sixteen[1:]),
		wiretest.ReadResponse(0xc1, 1, regionTO, sixteen),
		wiretest.Send(1, 0, "good"),
		wiretest.Send(1, 4, "too long"),
		wiretest.Untagged(0x01, 0x43, 0, 0, 1, 0, "half"),
		wiretest.Untagged(0x41, 0x44, 1, 0, 1, 0, ""),
		wiretest.Untagged(0x41, 0x45, 0, 0, 1, 0, "good"),
		wiretest.Untagged(0x41, 0x46, 4, 0, 1, 0, ""),
		wiretest.Untagged(0x41, 0x47, 0, 2, 1, 0, "\x11\x00\x00\x00"),
		wiretest.Untagged(0x41, 0x47, 0, 2, 1, 0, "\x01\x02\xe0\x00\x00\x2e"+string(wiretest.ReadRequest(1, 3, 0, 16, 1, 0))),
		wiretest.Untagged(0x41, 0x4c, 0, 1, 1, 0, ""),
		wiretest.ReadRequest(1, 7, 8, 16, 1, regionTO),
		wiretest.ReadRequest(1, 7, 8, math.MaxUint32, 1, regionTO),
		wiretest.ReadRequest(1, 7, 8, 0, 0, 0),
		wiretest.ReadRequest(2, 7, 8, 16, 3, 0),
	}
}

// script is an input of segments.
func script(segments ...[]byte) []byte {
	b := []byte{0}
	for _, s := range segments {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return b
}

func fuzzReceive(t *testing.T, input []byte) {
	v := newLonelyVictim(t)
	var cr *iwarp.ConnRequest
	v.p, cr = requester(t, v.rnic, "pipe", wiretest.Hex("00 01 00 00"))
	qc := &iwarp.QPConfig{PD: v.pd, SendCQ: v.cq, RecvCQ: v.cq, IRD: 2, MPA: iwarp.MPAOptions{NoCRC: true, EarlyResponderSend: true}}
	var err error
	v.qp, err = cr.Accept(testContext(t), qc)
	require.NoError(t, err)
	v.p.WantReply("there is no CRC", "00 01 00 00")
	v.posts()

	wire := input[1:]
	if input[0]&1 == 0 {
		wire = v.framed(wire)
	}
	go func() { _, _ = io.Copy(io.Discard, v.p.Conn) }()
	_, _ = v.p.Conn.Write(wire) // the QP may end before it has read all
	_ = v.p.Conn.(interface{ CloseWrite() error }).CloseWrite()
	<-v.qp.Done()
	v.p.Close()

	v.wantGuards()
	require.ErrorIs(t, v.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), net.ErrClosed)
	var wcs [3]iwarp.WC
	require.Equal(t, 2, v.cq.Poll(wcs[:]), "what was posted completes, once")
	require.Equal(t, iwarp.StateRTS, v.other.State())
	require.NoError(t, v.other.Abort())
}

// framed frames the segments of a script, with the victim's STags.
func (v *victim) framed(b []byte) (wire []byte) {
	dead := v.another(v.pd, anyRemote, nil)
	require.NoError(v, dead.Invalidate(context.Background()))
	stags := []stag.STag{
		v.mr.STag(), v.recv.STag(), v.sink.STag(), v.sharedMR.STag(), dead.STag(),
		v.another(v.pd, anyRemote, v.other).STag(),
	}
	rename := func(u []byte, at int) {
		if len(u) >= at+4 {
			if n := binary.BigEndian.Uint32(u[at:]); n >= 1 && int(n) <= len(stags) {
				binary.BigEndian.PutUint32(u[at:], uint32(stags[n-1]))
			}
		}
	}
	for len(b) >= 2 {
		n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
		u := bytes.Clone(b[2 : 2+n])
		b = b[2+n:]
		rename(u, 2)
		if len(u) > 1 && u[1]&0xf == 1 {
			rename(u, 34)
		}
		wire = append(wire, wiretest.FPDU(u)...)
	}
	return wire
}

// wantGuards checks the octets between the regions.
func (v *victim) wantGuards() {
	v.Helper()
	got := bytes.Clone(v.arena)
	for _, part := range [][2]int{{regionAt, regionLen}, {recvAt, recvLen}, {sinkAt, sinkLen}} {
		copy(got[part[0]:], v.want[part[0]:part[0]+part[1]])
	}
	require.Equal(v, v.want, got, "no octet outside the regions has changed")
}
