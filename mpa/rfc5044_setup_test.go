package mpa

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
)

var rev1 = Options{Revision: 1}

func TestMPA_50_61_InitiatorSendsAValidRequestInOneWrite(t *testing.T) {
	s := &script{reads: [][]byte{unhex(frameR2)}}
	_, _, err := Connect(t.Context(), s, rev1, 0, 0, nil)
	require.NoError(t, err)
	require.Equal(t, [][]byte{unhex(frameR1)}, s.writes, "R1 and nothing else")

	s = &script{reads: [][]byte{unhex(frameR6)}}
	_, _, err = Connect(t.Context(), s, Options{}, 16, 8, nil)
	require.NoError(t, err)
	require.Equal(t, [][]byte{unhex(frameR5)}, s.writes, "R5 and nothing else")
}

func TestMPA_52_65_ResponderAnswersAndTakesFPDUs(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		accepted := accept(t.Context(), s, rev1, 0, 0, "")
		p.send(unhex(frameR1))
		p.want("R2", unhex(frameR2))
		r := accepted()
		require.NoError(t, r.err)
		ref := reference{crc: true}
		p.send(ref.stream(octets(20)))
		c := &collector{}
		c.stop = func() bool { return len(c.ulpdus) > 0 }
		require.NoError(t, placertest.Receive(r.conn, c))
		require.Equal(t, [][]byte{octets(20)}, c.ulpdus)
	})
}

func TestMPA_51_58_59_63_71_76_81_83_MalformedRequestClosesTheConnection(t *testing.T) {
	for what, request := range map[string]string{
		"a Reply where a Request is due": keyRep + "40010000",
		"another protocol":               "47455420 2f204854 54502f31 2e310d0a 0d0a0000",
		"revision 0":                     keyReq + "c0000000",
		"revision 3":                     keyReq + "40030000",
		"revision 255":                   keyReq + "40ff0000",
		"513 octets of private data":     keyReq + "40010201",
		"65535 octets of private data":   keyReq + "4001ffff",
	} {
		converse(t, func(t *testing.T, s transport.Stream, p *peer) {
			accepted := accept(t.Context(), s, Options{}, 0, 0, "")
			p.send(unhex(request))
			p.wantClosed(what)
			requireFault(t, transport.MPAStartup, accepted().err, "%s is reported locally", what)
		})
	}
	for i := range keySize {
		request := unhex(frameR1)
		request[i] ^= 0x20
		s := &script{reads: [][]byte{request}}
		_, err := ReadRequest(t.Context(), s)
		requireFault(t, transport.MPAStartup, err, "a key whose octet %d is wrong", i)
		require.Equal(t, 1, s.closed)
	}
}

func TestMPA_53_58_67_74_81_83_MalformedReplyClosesTheConnection(t *testing.T) {
	for what, reply := range map[string]string{
		"a Request: both are initiators": keyReq + "40010000",
		"another protocol":               "48545450 2f312e31 20343030 20426164 0d0a0d0a",
		"revision 0":                     keyRep + "c0000000",
		"revision 2 to revision 1":       keyRep + "50020004 00000000",
		"revision 2, and not enhanced":   keyRep + "40020000",
		"revision 3":                     keyRep + "40030000",
		"513 octets of private data":     keyRep + "40010201",
	} {
		converse(t, func(t *testing.T, s transport.Stream, p *peer) {
			connected := connect(t.Context(), s, rev1, 0, 0, "")
			p.want("R1", unhex(frameR1))
			p.send(unhex(reply))
			p.wantClosed(what)
			r := connected()
			requireFault(t, transport.MPAStartup, r.err, "%s is reported locally", what)
			require.NotErrorIs(t, r.err, ErrNoReply, what)
		})
	}
	for i := range keySize {
		reply := unhex(frameR2)
		reply[i] ^= 0x20
		s := &script{reads: [][]byte{reply}}
		_, _, err := Connect(t.Context(), s, rev1, 0, 0, nil)
		requireFault(t, transport.MPAStartup, err, "a key whose octet %d is wrong", i)
		require.Equal(t, 1, s.closed)
	}
}

func TestMPA_54_14_MarkersAreSentExactlyWhenThePeerAsks(t *testing.T) {
	for _, theirs := range []bool{false, true} {
		for _, ours := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				a, b := establish(t, Options{Markers: theirs}, Options{Markers: ours})
				defer a.conn.Close()
				defer b.conn.Close()
				require.Equal(t, theirs, b.terms.SendMarkers, "the responder sends what the initiator asked for")
				require.Equal(t, ours, a.terms.SendMarkers, "the initiator sends what the responder asked for")
				require.Equal(t, theirs, a.terms.ReceiveMarkers)
				require.Equal(t, ours, b.terms.ReceiveMarkers)
				exchangeSegments(t, a.conn, b.conn)
			})
		}
	}
}

// exchangeSegments sends segments from a to b and then from b to a.
func exchangeSegments(t *testing.T, a, b *Conn) {
	t.Helper()
	for _, way := range [][2]*Conn{{a, b}, {b, a}} {
		sent := make(chan error, 1)
		go func() {
			for _, u := range mixed() {
				for !way[0].Append(u[:14], [][]byte{u[14:]}, false) {
					if err := way[0].Flush(true); err != nil {
						sent <- err
						return
					}
				}
			}
			sent <- way[0].Flush(true)
		}()
		p := &collector{}
		p.stop = func() bool { return len(p.ulpdus) == len(mixed()) }
		require.NoError(t, placertest.Receive(way[1], p))
		require.NoError(t, <-sent)
		require.Equal(t, mixed(), p.ulpdus)
	}
}

func TestMPA_24_26_CRCIsAskedForByDefault(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := &script{reads: [][]byte{unhex(keyRep + "00010000")}, secure: secure}
		_, terms, err := Connect(t.Context(), s, rev1, 0, 0, nil)
		require.NoError(t, err)
		require.Equal(t, byte(0x40), s.wire()[16], "C in the Request")
		require.True(t, terms.CRC)

		s = &script{reads: [][]byte{unhex(keyReq + "00010000")}, secure: secure}
		r, err := ReadRequest(t.Context(), s)
		require.NoError(t, err)
		_, terms, err = r.Accept(t.Context(), rev1, 0, 0, nil)
		require.NoError(t, err)
		require.Equal(t, byte(0x40), s.wire()[16], "C in the Reply")
		require.True(t, terms.CRC)
	}
}

// An initiator that insists on the CRC, such as siw, may look for it in the Reply.
func TestReplyConfirmsTheCRC(t *testing.T) {
	for _, c := range []struct{ request, reply string }{{"40", "40"}, {"00", "00"}} {
		s := &script{reads: [][]byte{unhex(keyReq + c.request + "010000")}}
		r, err := ReadRequest(t.Context(), s)
		require.NoError(t, err)
		_, _, err = r.Accept(t.Context(), Options{Revision: Revision1, NoCRC: true}, 0, 0, nil)
		require.NoError(t, err)
		require.Equal(t, unhex(c.reply)[0], s.wire()[16], "C in the Reply of a responder that can do without, to C in %s", c.request)
	}
}

func TestMPA_25_28_29_55_CRCIsOnUnlessBothSaidNo(t *testing.T) {
	for _, initiator := range []bool{false, true} {
		for _, responder := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				a, b := establish(t, Options{NoCRC: !initiator}, Options{NoCRC: !responder})
				defer a.conn.Close()
				defer b.conn.Close()
				want := initiator || responder
				for _, end := range []result{a, b} {
					require.Equal(t, want, end.terms.CRC, "both ends know, C=%t and C=%t", initiator, responder)
					require.Equal(t, want, end.conn.Caps().Digest)
					require.Equal(t, want, end.conn.enc.crc, "generated")
				}
				exchangeSegments(t, a.conn, b.conn)
				for _, way := range [][2]*Conn{{a.conn, b.conn}, {b.conn, a.conn}} {
					wantFirstBadCRC(t, way[0], way[1], want)
				}
			})
		}
	}
}

// wantFirstBadCRC has from send an FPDU whose CRC is wrong, and then says whether to checked it.
func wantFirstBadCRC(t *testing.T, from, to *Conn, checked bool) {
	t.Helper()
	bad := reference{crc: true, field: 1}
	_, err := from.s.Write([][]byte{bad.stream(octets(20))}, true)
	require.NoError(t, err)
	p := &collector{}
	p.stop = func() bool { return len(p.ulpdus) == 1 }
	err = placertest.Receive(to, p)
	if checked {
		requireFault(t, transport.MPACRC, err, "it is checked")
		require.Empty(t, p.ulpdus)
		return
	}
	require.NoError(t, err, "it is not checked")
	require.Equal(t, [][]byte{octets(20)}, p.ulpdus)
}

// exchangeMarked exchanges one FPDU each way, straight after the Reply.
func exchangeMarked(t *testing.T, p *peer, set func() result) {
	t.Helper()
	ref := reference{markers: true, crc: true}
	p.send(ref.stream(octets(700)))
	r := set()
	require.NoError(t, r.err)
	c := &collector{}
	c.stop = func() bool { return len(c.ulpdus) == 1 }
	require.NoError(t, placertest.Receive(r.conn, c), "the frames do not count toward the Markers received")
	require.Equal(t, [][]byte{octets(700)}, c.ulpdus)
	require.True(t, r.conn.Append(octets(700), nil, true))
	require.NoError(t, r.conn.Flush(true))
	ref = reference{markers: true, crc: true}
	p.want("the frames do not count toward the Markers sent", ref.stream(octets(700)))
}

func TestMPA_47_48_49_BothDirectionsBeginAfterTheFrames(t *testing.T) {
	private := strings.Repeat("x", 248)
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		connected := connect(t.Context(), s, Options{Markers: true}, 1, 1, private)
		request := Frame{
			Markers: true, CRC: true, Enhanced: true, Revision: 2,
			PrivateData: append(unhex("8001c001"), private...),
		}
		p.want("the Request, without CRC or Markers", request.AppendRequest(nil))
		reply := Frame{Markers: true, CRC: true, Enhanced: true, Revision: 2, PrivateData: unhex("80018001")}
		p.send(reply.AppendReply(nil))
		exchangeMarked(t, p, connected)
	})
	converse(t, func(t *testing.T, s transport.Stream, p *peer) { // the other side
		accepted := accept(t.Context(), s, Options{Markers: true}, 1, 1, private)
		request := Frame{Markers: true, CRC: true, Enhanced: true, Revision: 2, PrivateData: unhex("80018001")}
		p.send(request.AppendRequest(nil))
		reply := Frame{
			Markers: true, CRC: true, Enhanced: true, Revision: 2,
			PrivateData: append(unhex("80018001"), private...),
		}
		p.want("the Reply, without CRC or Markers", reply.AppendReply(nil))
		exchangeMarked(t, p, accepted)
	})
}

func TestMPA_56_RejectBitOfARequestIsIgnored(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		accepted := accept(t.Context(), s, rev1, 0, 0, "")
		p.send(unhex(keyReq + "60010000"))
		p.want("a Reply that accepts", unhex(frameR2))
		require.NoError(t, accepted().err)
	})
}

// TestMPA_56_RejectBitIsTheVerdict of a Reply, and is not in a Request, whatever the Frame says.
func TestMPA_56_RejectBitIsTheVerdict(t *testing.T) {
	for _, rejects := range []bool{false, true} {
		f := Frame{CRC: true, Reject: rejects, Revision: 1}
		reply, request := f.AppendReply(nil), f.AppendRequest(nil)
		require.Equal(t, rejects, reply[16]&0x20 != 0)
		require.Zero(t, request[16]&0x20, "R is sent as 0")
		got, _, err := ParseReplyHeader(reply)
		require.NoError(t, err)
		require.Equal(t, rejects, got.Reject)
		request[16] |= 0x20
		got, _, err = ParseRequestHeader(request)
		require.NoError(t, err)
		require.False(t, got.Reject, "and ignored")
	}
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		p.send(unhex(keyReq + "40010000"))
		r, err := ReadRequest(t.Context(), s)
		require.NoError(t, err)
		require.NoError(t, r.Reject(t.Context(), -1, -1, nil))
		p.want("a Reply that rejects", unhex(keyRep+"60010000"))
	})
}

func TestMPA_57_ReservedBitsAreSentAsZeroAndIgnored(t *testing.T) {
	for _, rev := range []byte{1, 2} {
		for bit := byte(1); bit <= 0x10; bit <<= 1 {
			if rev == 2 && bit == 0x10 {
				continue // S
			}
			header := append(unhex(keyReq), 0x40|bit, rev, 0, 0)
			f, _, err := ParseRequestHeader(header)
			require.NoError(t, err, "reserved bit %02x in a Request of revision %d", bit, rev)
			require.False(t, f.Enhanced)
			copy(header, unhex(keyRep))
			_, _, err = ParseReplyHeader(header)
			require.NoError(t, err, "reserved bit %02x in a Reply of revision %d", bit, rev)
		}
	}
	all := Frame{Markers: true, CRC: true, Reject: true, Enhanced: true, Revision: 2}
	require.Zero(t, all.AppendReply(nil)[16]&0x0f, "reserved bits of a Reply")
	require.Zero(t, all.AppendRequest(nil)[16]&0x2f, "reserved bits, and R, of a Request")
}

func TestMPA_7_RevisionIsToldUpward(t *testing.T) {
	for _, rev := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			a, b := establish(t, Options{Revision: rev}, Options{})
			defer a.conn.Close()
			defer b.conn.Close()
			require.Equal(t, rev, a.terms.Revision, "the initiator's")
			require.Equal(t, rev, b.terms.Revision, "the responder's")
		})
	}
}

func TestMPA_60_72_PrivateDataReachesTheOtherULP(t *testing.T) {
	for _, v := range []struct{ rev, n int }{{1, 0}, {1, 1}, {1, 511}, {1, 512}, {2, 0}, {2, 1}, {2, 507}, {2, 508}} {
		private := string(octets(v.n))
		o := Options{Revision: v.rev, LargePrivateData: true}
		synctest.Test(t, func(t *testing.T) {
			x, y := transport.Pipe(transport.PipeOptions{})
			connected := connect(t.Context(), transport.NewStream(x, nil), o, 1, 1, private)
			r, err := ReadRequest(t.Context(), transport.NewStream(y, nil))
			require.NoError(t, err)
			require.Equal(t, private, string(r.PrivateData()), "%d octets at the responder, revision %d", v.n, v.rev)
			require.Equal(t, v.rev, r.Revision())
			b, terms, err := r.Accept(t.Context(), Options{LargePrivateData: true}, 1, 1, []byte(private))
			require.NoError(t, err)
			require.Equal(t, private, string(terms.PeerPrivateData))
			a := connected()
			require.NoError(t, a.err)
			require.Equal(t, private, string(a.terms.PeerPrivateData), "%d octets at the initiator, revision %d", v.n, v.rev)
			require.NoError(t, a.conn.Close(), "an initiator that dislikes what it reads may close")
			require.ErrorIs(t, placertest.Receive(b, &collector{}), io.EOF)
			require.NoError(t, b.Close())
		})
	}
}

func TestTooMuchPrivateDataIsRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, v := range []struct {
		o     Options
		limit int
	}{
		{Options{}, 248},
		{rev1, 248},
		{Options{LargePrivateData: true}, 508},
		{Options{Revision: 1, LargePrivateData: true}, 512},
	} {
		s := &script{}
		_, _, err := Connect(t.Context(), s, v.o, 1, 1, make([]byte, v.limit+1))
		require.ErrorContains(t, err, "private data", "%+v", v)
		require.Empty(t, s.writes, "nothing is sent")
		require.Zero(t, s.closed, "the stream stays the caller's")

		request := frameR5
		if v.o.Revision == 1 {
			request = frameR1
		}
		s = &script{reads: [][]byte{unhex(request)}}
		r, err := ReadRequest(t.Context(), s)
		require.NoError(t, err)
		_, _, err = r.Accept(t.Context(), v.o, 1, 1, make([]byte, v.limit+1))
		require.ErrorContains(t, err, "private data", "%+v", v)
		require.ErrorContains(t, r.Reject(t.Context(), -1, -1, make([]byte, 249)), "private data")
		require.Empty(t, s.writes, "nothing is sent")
		require.NoError(t, r.Reject(t.Context(), -1, -1, make([]byte, 248)), "it can still be answered")
	}
}

func TestMPA_62_ResponderIsSilentBeforeAValidRequest(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		accepted := accept(t.Context(), s, rev1, 0, 0, "")
		p.wantNothing("nothing comes unasked")
		p.send(unhex(frameR4)[:22])
		p.wantNothing("nor before the Request is whole")
		p.send(unhex(frameR4)[22:])
		p.want("R2", unhex(frameR2))
		require.Equal(t, "abcd", string(accepted().terms.PeerPrivateData))
	})
}

func TestMPA_64_RefusalLeavesTCPOpen(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		p.send(unhex(frameR1))
		r, err := ReadRequest(t.Context(), s)
		require.NoError(t, err)
		require.NoError(t, r.Reject(t.Context(), -1, -1, []byte("no")))
		p.want("R3", unhex(frameR3))
		p.wantNothing("the connection stays open")
	})
}

func TestMPA_68_RejectedInitiatorLeavesTCPOpen(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		connected := connect(t.Context(), s, rev1, 0, 0, "")
		p.want("R1", unhex(frameR1))
		p.send(unhex(frameR3))
		var rejected *RejectError
		require.ErrorAs(t, connected().err, &rejected)
		require.Equal(t, RejectError{PrivateData: []byte("no"), IRD: -1, ORD: -1}, *rejected)
		p.wantNothing("the connection stays open")
	})
}

func TestMPA_66_ARCH_34_NoFPDUBeforeBothFrames(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		connect(t.Context(), s, rev1, 0, 0, "")
		p.want("R1", unhex(frameR1))
		p.wantNothing("nothing follows the Request before the Reply")
		require.NoError(t, p.c.Close())
	})
	ref := reference{crc: true}
	s := &script{reads: [][]byte{unhex(frameR1), ref.stream(octets(20))}}
	r, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	_, _, err = r.Accept(t.Context(), rev1, 0, 0, nil)
	requireFault(t, transport.MPAStartup, err, "an FPDU before the Reply is malformed")
	require.Empty(t, s.writes)
	require.Equal(t, 1, s.closed)
}

func TestMPA_69_InitiatorMaySendAtOnce(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		connected := connect(t.Context(), s, rev1, 0, 0, "")
		p.want("R1", unhex(frameR1))
		p.send(unhex(frameR2))
		r := connected()
		require.NoError(t, r.err)
		require.True(t, r.conn.Append(octets(20), nil, true))
		require.NoError(t, r.conn.Flush(true), "an initiator is not fenced")
		ref := reference{crc: true}
		p.want("its first FPDU", ref.stream(octets(20)))
	})
}

func TestMPA_70_ResponderIsFencedUntilAnFPDUWasValidated(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		accepted := accept(t.Context(), s, rev1, 0, 0, "")
		p.send(unhex(frameR4)) // wants Markers
		p.want("R2", unhex(frameR2))
		r := accepted()
		require.NoError(t, r.err)
		for _, payload := range [][][]byte{nil, {octets(4096)}} { // nothing, and what is lent
			require.True(t, r.conn.Append(octets(20), payload, false))
			require.ErrorIs(t, r.conn.Flush(false), transport.ErrFenced)
			require.ErrorIs(t, r.conn.Flush(true), transport.ErrFenced, "it does not wait either")
		}
		ref := reference{crc: true}
		first := ref.stream(octets(30))
		p.send(first[:20])
		p.wantNothing("no FPDU, and no Marker, before a whole FPDU came")
		p.send(first[20:])
		c := &collector{}
		c.refuse = func(uint64) error {
			require.NoError(t, r.conn.Flush(true), "the fence is down when the first segment is handed up")
			return nil
		}
		c.stop = func() bool { return len(c.ulpdus) == 1 }
		require.NoError(t, placertest.Receive(r.conn, c))
		back := reference{markers: true, crc: true}
		p.want("what was queued, with its Markers", back.stream(octets(20), append(octets(20), octets(4096)...)))
	})
}

func TestMPA_70_ABadFirstFPDUDoesNotLiftTheFence(t *testing.T) {
	ref := reference{crc: true, field: 1}
	s := &script{reads: [][]byte{unhex(frameR1), nil, ref.stream(octets(20))}}
	r, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	c, _, err := r.Accept(t.Context(), rev1, 0, 0, nil)
	require.NoError(t, err)
	requireFault(t, transport.MPACRC, drain(c, &collector{}))
	require.True(t, c.Append(octets(20), nil, true))
	require.ErrorIs(t, c.Flush(false), transport.ErrFenced)
}

func TestEarlyResponderSendTakesTheFenceAway(t *testing.T) {
	s := &script{reads: [][]byte{unhex(frameR1)}}
	r, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	c, _, err := r.Accept(t.Context(), Options{EarlyResponderSend: true}, 0, 0, nil)
	require.NoError(t, err)
	require.True(t, c.Append(octets(20), nil, true))
	require.NoError(t, c.Flush(false))
}

func TestMPA_75_77_OneTimerBoundsTheWholeExchange(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		accepted := accept(ctx, s, rev1, 0, 0, "")
		gone := make(chan struct{})
		go func() { // a Request that never ends
			defer close(gone)
			for _, b := range unhex(keyReq + "40010200") {
				if _, err := p.c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		err := accepted().err
		requireFault(t, transport.MPAConnectionLost, err, "two responders, or a slow initiator")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(start), "octets that dribble in do not extend it")
		<-gone
	})
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		connected := connect(ctx, s, rev1, 0, 0, "")
		p.want("R1", unhex(frameR1))
		err := connected().err
		require.ErrorIs(t, err, context.DeadlineExceeded, "no Reply")
		require.NotErrorIs(t, err, ErrNoReply, "silence is no reason to try revision 1")
		p.wantClosed("after the timer")
	})
}

func TestCancelEndsTheExchange(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		ctx, cancel := context.WithCancel(t.Context())
		connected := connect(ctx, s, rev1, 0, 0, "")
		p.want("R1", unhex(frameR1))
		cancel()
		require.ErrorIs(t, connected().err, context.Canceled)
		p.wantClosed("after the cancellation")
	})
}

func TestMPA_59_81_FINWithinAFrameIsError1(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		accepted := accept(t.Context(), s, rev1, 0, 0, "")
		p.send(unhex(frameR4)[:23]) // one octet of private data is missing
		require.NoError(t, p.c.Close())
		requireFault(t, transport.MPAConnectionLost, accepted().err)
	})
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		connected := connect(t.Context(), s, rev1, 0, 0, "")
		p.want("R1", unhex(frameR1))
		p.send(unhex(frameR2)[:1])
		require.NoError(t, p.c.Close())
		err := connected().err
		requireFault(t, transport.MPAConnectionLost, err)
		require.NotErrorIs(t, err, ErrNoReply, "an octet of a Reply has come")
	})
}

func TestMPA_78_NothingIsReadBeyondAFrame(t *testing.T) {
	s := &script{reads: [][]byte{append(unhex(frameR4), "next"...)}}
	_, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("next")}, s.reads, "what follows is left where it is")
}

func TestUnknownRevisionIsAnErrorOfTheCaller(t *testing.T) {
	s := &script{reads: [][]byte{unhex(frameR1)}}
	_, _, err := Connect(t.Context(), s, Options{Revision: 3}, 0, 0, nil)
	require.ErrorIs(t, err, errRevision)
	r, err := ReadRequest(t.Context(), s)
	require.NoError(t, err)
	_, _, err = r.Accept(t.Context(), Options{Revision: -1}, 0, 0, nil)
	require.ErrorIs(t, err, errRevision)
	require.Empty(t, s.writes)
}

func TestTraceReplacesTheStream(t *testing.T) {
	first, second := &script{reads: [][]byte{unhex(keyReq + "6f010000")}}, &script{}
	r, err := ReadRequest(t.Context(), first)
	require.NoError(t, err)
	r.Trace(func(s transport.Stream, request []byte) transport.Stream {
		require.Same(t, first, s)
		require.Equal(t, unhex(keyReq+"6f010000"), request, "the Request as it came")
		return second
	})
	_, _, err = r.Accept(t.Context(), rev1, 0, 0, nil)
	require.NoError(t, err)
	require.Empty(t, first.writes)
	require.Equal(t, unhex(frameR2), second.wire())
}
