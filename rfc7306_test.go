package iwarp_test

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// RFC 7306 as an application sees it.

// word returns the integer at off of memory.
func word(mem []byte, off int) *uint64 { return (*uint64)(unsafe.Pointer(&mem[off])) }

// atomicRequest returns an Atomic Request (RFC 7306 section 5.2.1).
func atomicRequest(msn uint32, op byte, at stag.STag, to uint64, operands ...uint64) []byte {
	b := wiretest.Untagged(0x41, 0x4a, 0, 1, msn, 0, "")
	b = append(b, 0, 0, 0, op)
	b = binary.BigEndian.AppendUint32(b, msn)
	b = binary.BigEndian.AppendUint32(b, uint32(at))
	b = binary.BigEndian.AppendUint64(b, to)
	for _, v := range operands {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// atomicResponse returns an Atomic Response (RFC 7306 section 5.2.2).
func atomicResponse(msn, id uint32, old uint64) []byte {
	b := wiretest.Untagged(0x41, 0x4b, 0, 3, msn, 0, "")
	b = binary.BigEndian.AppendUint32(b, id)
	return binary.BigEndian.AppendUint64(b, old)
}

const allBits = math.MaxUint64

func TestEXT_28_37_39_40_54_WorkRequestsOfAtomics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		for i, c := range []struct {
			wr   iwarp.SendWR
			op   byte
			want [4]uint64
		}{
			{iwarp.SendWR{Op: iwarp.OpFetchAdd, Add: 5}, 0, [4]uint64{5, 0, 0, allBits}},
			{iwarp.SendWR{Op: iwarp.OpFetchAdd, Add: 5, AddMask: 1 << 31, Compare: 1, CompareMask: 2}, 0, [4]uint64{5, 1 << 31, 0, allBits}},
			{iwarp.SendWR{Op: iwarp.OpCompareSwap, Compare: 1, Swap: 2}, 2, [4]uint64{2, allBits, 1, allBits}},
			{iwarp.SendWR{Op: iwarp.OpCompareSwap, Compare: 1, Swap: 2, CompareMask: 3, SwapMask: 4}, 2, [4]uint64{2, 4, 1, 3}},
			{iwarp.SendWR{Op: iwarp.OpSwap, Swap: 2}, 2, [4]uint64{2, allBits, 0, 0}},
			{iwarp.SendWR{Op: iwarp.OpSwap, Swap: 2, SwapMask: 4, Compare: 1, CompareMask: 3}, 2, [4]uint64{2, 4, 0, 0}},
		} {
			n := uint32(i + 1)
			c.wr.ID, c.wr.Remote = uint64(n), remote
			k.posts(c.wr)
			require.Equal(t, atomicRequest(n, c.op, remote.STag, remote.TO, c.want[:]...), k.p.Segment(), "%v", c.wr.Op)
			k.p.Send(atomicResponse(n, n, 1<<63+uint64(n)))
			wc := k.completes(k.cq, 1)[0]
			require.Equal(t, iwarp.WC{ID: uint64(n), QP: k.qp, Op: c.wr.Op, Len: 8, Old: 1<<63 + uint64(n)}, wc)
		}
		s := k.qp.Stats()
		require.Equal(t, iwarp.Traffic{Messages: 6, Octets: 6 * 52}, s.Sent.AtomicRequest)
		require.Equal(t, iwarp.Traffic{Messages: 6, Octets: 6 * 12}, s.Received.AtomicResponse)
		require.NoError(t, k.qp.Abort())
	})
}

func TestEXT_9_12_16_20_WorkRequestsOfImmediateData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(
			iwarp.SendWR{ID: 1, Op: iwarp.OpImmediate, Imm: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}},
			iwarp.SendWR{ID: 2, Op: iwarp.OpImmediate, Flags: iwarp.Solicited},
			iwarp.SendWR{ID: 3, Op: iwarp.OpRDMAWriteImm, Inline: []byte("data"), Remote: remote, Imm: [8]byte{9}},
			iwarp.SendWR{ID: 4, Op: iwarp.OpRDMAWriteImm, Flags: iwarp.Solicited, Local: k.at(0, 2), Remote: remote},
			iwarp.SendWR{ID: 5, Op: iwarp.OpRDMAWriteImm})
		immediate := func(opcode byte, msn uint32, imm string) []byte {
			return wiretest.Untagged(0x41, opcode, 0, 0, msn, 0, imm)
		}
		for _, want := range [][]byte{
			immediate(0x48, 1, "\x01\x02\x03\x04\x05\x06\x07\x08"),
			immediate(0x49, 2, "\x00\x00\x00\x00\x00\x00\x00\x00"),
			wiretest.Write(remote.STag, remote.TO, "data"), immediate(0x48, 3, "\x09\x00\x00\x00\x00\x00\x00\x00"),
			wiretest.Write(remote.STag, remote.TO, "\x00\x00"), immediate(0x49, 4, "\x00\x00\x00\x00\x00\x00\x00\x00"),
			wiretest.Write(0, 0, ""), immediate(0x48, 5, "\x00\x00\x00\x00\x00\x00\x00\x00"),
		} {
			require.Equal(t, want, k.p.Segment())
		}
		wcs := k.completes(k.cq, 5)
		for i, want := range []iwarp.WC{{Op: iwarp.OpImmediate}, {Op: iwarp.OpImmediate}, {Op: iwarp.OpRDMAWriteImm, Len: 4}, {Op: iwarp.OpRDMAWriteImm, Len: 2}, {Op: iwarp.OpRDMAWriteImm}} {
			want.ID, want.QP = uint64(i+1), k.qp
			require.Equal(t, want, wcs[i], "a Write with Immediate has one completion")
		}
		require.Equal(t, iwarp.Traffic{Messages: 5, Octets: 40}, k.qp.Stats().Sent.Immediate)
		require.NoError(t, k.qp.Abort())
	})
}

func TestExtensionsThatCannotBePosted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		short := iwarp.RemoteBuffer{STag: 1, Len: 7}
		for what, c := range map[string]struct {
			wr iwarp.SendWR
			is error
		}{
			"an Atomic of 7 octets":               {iwarp.SendWR{Op: iwarp.OpFetchAdd, Remote: short}, iwarp.ErrBounds},
			"a CompareSwap of nothing":            {iwarp.SendWR{Op: iwarp.OpCompareSwap}, iwarp.ErrBounds},
			"an Atomic with an SGE":               {iwarp.SendWR{Op: iwarp.OpSwap, Remote: remote, Local: k.at(0, 8)}, nil},
			"an Atomic with inline data":          {iwarp.SendWR{Op: iwarp.OpFetchAdd, Remote: remote, Inline: make([]byte, 8)}, nil},
			"a solicited Atomic":                  {iwarp.SendWR{Op: iwarp.OpFetchAdd, Remote: remote, Flags: iwarp.Solicited}, nil},
			"an Immediate with an SGE":            {iwarp.SendWR{Op: iwarp.OpImmediate, Local: k.at(0, 8)}, nil},
			"an Immediate with inline data":       {iwarp.SendWR{Op: iwarp.OpImmediate, Inline: make([]byte, 8)}, nil},
			"a Write with Immediate out of place": {iwarp.SendWR{Op: iwarp.OpRDMAWriteImm, Remote: short, Inline: make([]byte, 8)}, iwarp.ErrBounds},
			"a solicited Write":                   {iwarp.SendWR{Op: iwarp.OpRDMAWrite, Remote: remote, Flags: iwarp.Solicited}, nil},
			"what only completes":                 {iwarp.SendWR{Op: iwarp.OpRecvImm}, nil},
		} {
			err := k.qp.PostSend(c.wr)
			var post *iwarp.PostError
			require.ErrorAs(t, err, &post, what)
			if c.is != nil {
				require.ErrorIs(t, err, c.is, what)
			}
		}
		k.p.WantIdle("nothing is sent", time.Second)
		require.NoError(t, k.qp.Abort())
	})
}

func TestEXT_11_14_16_17_21_ReceivesOfImmediateData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 1}, iwarp.RecvWR{ID: 2, Local: k.at(0, 16)}, iwarp.RecvWR{ID: 3, Local: k.at(16, 16)}))
		solicited := make(chan iwarp.WC, 4)
		waits := func() {
			var wcs [4]iwarp.WC
			n, err := k.cq.WaitSolicited(testContext(t), wcs[:])
			require.NoError(t, err)
			for _, wc := range wcs[:n] {
				solicited <- wc
			}
		}
		go waits()
		k.p.Send(wiretest.Untagged(0x41, 0x48, 0, 0, 1, 0, "\xff\x00\xff\x00\xff\x00\xff\x01"))
		synctest.Wait()
		require.Empty(t, solicited, "0x8 is no solicited event")
		k.p.Send(wiretest.Untagged(0x41, 0x43, 0, 0, 2, 0, "send"))
		synctest.Wait()
		require.Empty(t, solicited)
		k.p.Send(wiretest.Untagged(0x41, 0x49, 0, 0, 3, 0, "solicits"))
		for _, want := range []iwarp.WC{
			{ID: 1, Op: iwarp.OpRecvImm, Imm: [8]byte{0xff, 0, 0xff, 0, 0xff, 0, 0xff, 1}},
			{ID: 2, Op: iwarp.OpRecv, Len: 4},
			{ID: 3, Op: iwarp.OpRecvImm, Flags: iwarp.Solicited, Imm: [8]byte([]byte("solicits"))},
		} {
			want.QP = k.qp
			require.Equal(t, want, <-solicited, "0x9 is: all of them, in the order sent")
		}
		require.Equal(t, append([]byte("send"), make([]byte, 28)...), k.mem[:32], "the memory of a receive is for Sends")
		require.Equal(t, iwarp.Traffic{Messages: 2, Octets: 16}, k.qp.Stats().Received.Immediate)

		// A receive that took an Immediate has given its slot back, like any other.
		for msn := range uint32(300) {
			require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{ID: 9}))
			k.p.Send(wiretest.Untagged(0x41, 0x48, 0, 0, msn+4, 0, "12345678"))
			require.Equal(t, iwarp.OpRecvImm, k.completes(k.cq, 1)[0].Op)
		}
		require.NoError(t, k.qp.Abort())
	})
}

func TestEXT_11_ImmediateDataTakesASharedReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newShop(t, 8, nil)
		s.posts(1, 2, 3)
		p, a := s.opens(iwarp.QPConfig{})
		p.Send(wiretest.Untagged(0x41, 0x48, 0, 0, 1, 0, "immediat"))
		p.Send(wiretest.Send(2, 0, "send"))
		want := iwarp.WC{ID: 1, QP: a.qp, Op: iwarp.OpRecvImm, Imm: [8]byte([]byte("immediat"))}
		require.Equal(t, want, a.completes(a.qp.RecvCQ(), 1)[0], "like a Send")
		a.receives(2, 4)
		require.Equal(t, []string{"", "send"}, []string{s.slot(1), s.slot(2)})
		require.Equal(t, 1, s.srq.Stats().Free, "both messages took a receive")
	})
}

func TestEXT_13_18_25_31_45_46_67_69_HostileExtensions(t *testing.T) {
	atomic := func(name string, segment func(at stag.STag, to uint64) []byte, code transport.Code, is error) attack {
		a := attack{name: name, code: code, is: is}
		a.segment = func(v *victim) []byte {
			mr := v.another(v.pd, stag.LocalWrite|stag.RemoteAtomic, nil)
			return segment(mr.STag(), regionTO)
		}
		return a
	}
	add := func(off uint64) func(stag.STag, uint64) []byte {
		return func(at stag.STag, to uint64) []byte { return atomicRequest(1, 0, at, to+off, 1, 0, 0, allBits) }
	}
	list := []attack{
		atomic("an AOpCode of 1", func(at stag.STag, to uint64) []byte { return atomicRequest(1, 1, at, to, 1, 0, 0, 0) }, 0x0206, iwarp.ErrUnsupported),
		atomic("an operand too few", func(at stag.STag, to uint64) []byte { return atomicRequest(1, 0, at, to, 1, 0, 0) }, 0x0207, nil),
		atomic("an operand too many", func(at stag.STag, to uint64) []byte { return atomicRequest(1, 0, at, to, 1, 0, 0, 0, 0) }, 0x1205, nil),
		atomic("after the end", add(regionLen), 0x0101, iwarp.ErrBounds),
		atomic("across the end", add(regionLen-4), 0x0101, iwarp.ErrBounds),
		atomic("before the beginning", add(^uint64(7)), 0x0101, iwarp.ErrBounds),
		{name: "without the right", code: 0x0102, is: iwarp.ErrAccess, segment: func(v *victim) []byte {
			return atomicRequest(1, 2, v.mr.STag(), regionTO, 1, allBits, 0, 0)
		}},
		{name: "of another QP", code: 0x0103, is: iwarp.ErrAccess, segment: func(v *victim) []byte {
			mr := v.another(v.pd, stag.LocalWrite|stag.RemoteAtomic, v.other)
			return atomicRequest(1, 2, mr.STag(), regionTO, 1, allBits, 0, 0)
		}},
		fixed("an unknown STag", 0x0100, iwarp.ErrInvalidSTag, atomicRequest(1, 0, 0x01020304, 0, 1, 0, 0, 0)),
		fixed("a response without a request", 0x0207, nil, atomicResponse(1, 1, 1)),
		fixed("an Immediate of 7 octets", 0x0207, nil, wiretest.Untagged(0x41, 0x48, 0, 0, 1, 0, "seven..")),
		fixed("an Immediate of 9 octets", 0x1205, iwarp.ErrBounds, wiretest.Untagged(0x41, 0x48, 0, 0, 1, 0, "nine.....")),
	}
	list[len(list)-1].recv = iwarp.StatusLocalLength
	for off := uint64(1); off < 8; off++ {
		list = append(list, atomic("a target that is not aligned", add(off), 0x0207, nil))
	}
	attacks(t, list)
}

// TestEXT_16_EveryBitOfImmediateDataIsUnchanged: each bit alone, all but each bit, none and all.
func TestEXT_16_EveryBitOfImmediateDataIsUnchanged(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe"})
	ctx := testContext(t)
	patterns := []uint64{0, ^uint64(0)}
	for bit := range 64 {
		patterns = append(patterns, 1<<bit, ^uint64(1<<bit))
	}
	for _, p := range patterns {
		var imm [8]byte
		binary.BigEndian.PutUint64(imm[:], p)
		require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
		_, err := doOne(ctx, client.qp, iwarp.SendWR{Op: iwarp.OpImmediate, Imm: imm})
		require.NoError(t, err)
		require.Equal(t, imm, server.completes(server.qp.RecvCQ(), 1)[0].Imm)
	}
}

// TestEXT_6_FlagsOfThePeerAreOffUntilKnown: the applications negotiate. What they do not negotiate is known when the
// peer has used it or answered.
func TestEXT_6_FlagsOfThePeerAreOffUntilKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, server := newSide(t, nil), newSide(t, nil)
		var wanted iwarp.Extensions
		client.meets(server, iwarp.QPConfig{PrivateData: []byte{byte(iwarp.ExtImmediate | iwarp.ExtAtomic)}}, func(cr *iwarp.ConnRequest) iwarp.QPConfig {
			wanted = iwarp.Extensions(cr.PrivateData()[0])
			return iwarp.QPConfig{PrivateData: []byte{byte(wanted & iwarp.ExtAtomic)}}
		})
		require.Equal(t, iwarp.ExtImmediate|iwarp.ExtAtomic, client.qp.Extensions(), "what this side takes")
		require.Zero(t, client.qp.PeerExtensions(), "private data is the application's to look at")
		require.Zero(t, server.qp.PeerExtensions())
		client.qp.SetPeerExtensions(iwarp.Extensions(client.qp.PrivateData()[0]))
		server.qp.SetPeerExtensions(wanted)
		require.Equal(t, iwarp.ExtAtomic, client.qp.PeerExtensions(), "it has negotiated above RDMAP")
		require.Equal(t, iwarp.ExtImmediate|iwarp.ExtAtomic, server.qp.PeerExtensions())
		client.qp.SetPeerExtensions(0)
		require.Zero(t, client.qp.PeerExtensions())
	})
	for what, c := range map[string]struct {
		does func(k *talk)
		want iwarp.Extensions
	}{
		"nothing":    {func(*talk) {}, 0},
		"a Send":     {func(k *talk) { k.p.Send(wiretest.Send(1, 0, "")) }, 0},
		"Immediate":  {func(k *talk) { k.p.Send(wiretest.Untagged(0x41, 0x48, 0, 0, 1, 0, "12345678")) }, iwarp.ExtImmediate},
		"and marked": {func(k *talk) { k.p.Send(wiretest.Untagged(0x41, 0x49, 0, 0, 1, 0, "12345678")) }, iwarp.ExtImmediate},
		"an Atomic Request": {func(k *talk) {
			mr, err := k.pd.RegisterMR(make([]byte, 8), stag.LocalWrite|stag.RemoteAtomic, nil)
			require.NoError(k, err)
			k.p.Send(atomicRequest(1, 0, mr.STag(), 0, 1, 0, 0, 0))
			k.p.Segment()
		}, iwarp.ExtAtomic},
		"an Atomic Response": {func(k *talk) {
			k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpFetchAdd, Remote: remote})
			k.p.Segment()
			require.Zero(k, k.qp.PeerExtensions(), "to ask is not to know")
			k.p.Send(atomicResponse(1, 1, 7))
		}, iwarp.ExtAtomic},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				require.NoError(t, k.qp.PostRecv(iwarp.RecvWR{}))
				c.does(k)
				synctest.Wait()
				require.Equal(t, c.want, k.qp.PeerExtensions())
				require.NoError(t, k.qp.Abort())
			})
		})
	}
	bubble(t, func(t *testing.T) {
		commits := func(negotiate bool) iwarp.QPConfig {
			return iwarp.QPConfig{Commit: &iwarp.CommitOptions{Negotiate: negotiate}}
		}
		for _, c := range []struct {
			client, server iwarp.QPConfig
			own, known     iwarp.Extensions
		}{
			{iwarp.QPConfig{}, commits(true), 0, 0},
			{commits(true), iwarp.QPConfig{}, 0, 0},
			{commits(true), commits(true), iwarp.ExtCommit, iwarp.ExtCommit},
			{commits(false), commits(false), iwarp.ExtCommit, 0},
		} {
			client, server := connect(t, pairConfig{network: "pipe", client: c.client, server: c.server})
			require.Equal(t, iwarp.ExtImmediate|iwarp.ExtAtomic|c.own, client.qp.Extensions())
			require.Equal(t, c.known, client.qp.PeerExtensions())
			if c.own != 0 {
				_, mr := server.register(8, stag.LocalWrite|stag.RemoteWrite, nil)
				require.NoError(t, client.qp.Commit(t.Context(), mr.Advertise(0, 8)))
				require.Equal(t, iwarp.ExtCommit, client.qp.PeerExtensions(), "it has answered")
				require.Equal(t, iwarp.ExtCommit, server.qp.PeerExtensions(), "it has used it")
			}
		}
	})
}

// TestEXT_7_PeerThatDoesNotKnowAtomics: an application that needs to know negotiates it in the private data, or tries on
// a connection that it can lose.
func TestEXT_7_PeerThatDoesNotKnowAtomics(t *testing.T) {
	for what, answer := range map[string]func(asked []byte) []byte{
		"it names the request": func(asked []byte) []byte { return wiretest.Terminate(0x0206, wiretest.DDPHeader, asked) },
		"it names nothing":     func([]byte) []byte { return wiretest.Terminate(0x0206, wiretest.NoHeader, nil) },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				errs := make(chan error, 1)
				go func() {
					_, err := k.qp.FetchAdd(testContext(t), remote, 0)
					errs <- err
				}()
				asked := k.p.Segment()
				k.p.Send(answer(asked))
				k.p.WantEOF("a Terminate is not answered by one")
				k.p.Close()
				err := <-errs
				require.ErrorIs(t, err, iwarp.ErrUnsupported)
				require.ErrorIs(t, err, net.ErrClosed)
				var te *iwarp.TerminateError
				require.ErrorAs(t, err, &te)
				require.True(t, te.Remote)
				require.ErrorIs(t, k.qp.Err(), iwarp.ErrUnsupported)
			})
		})
	}
}

// TestEXT_7_18_PeerThatDoesNotKnowImmediateData: the message may have completed long before the error.
func TestEXT_7_18_PeerThatDoesNotKnowImmediateData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		k.posts(iwarp.SendWR{ID: 1, Op: iwarp.OpImmediate})
		bad := k.p.Segment()
		k.wantCompletions("it is out", 1)
		k.p.Send(wiretest.Terminate(0x0206, wiretest.DDPHeader, bad))
		k.p.WantEOF("a Terminate is not answered by one")
		k.p.Close()
		<-k.qp.Done()
		require.ErrorIs(t, k.qp.Err(), iwarp.ErrUnsupported)
		e := <-k.rnic.Events()
		require.Equal(t, iwarp.EventTerminateReceived, e.Kind)
		require.ErrorIs(t, e.Err, iwarp.ErrUnsupported)
	})
}

func TestEXT_44_45_TargetThatIsNotAligned(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe"})
	mem, mr := server.register(32, stag.LocalWrite|stag.RemoteAtomic, nil)
	_, err := client.qp.FetchAdd(testContext(t), mr.Advertise(4, 8), 1)
	var te *iwarp.TerminateError
	require.ErrorAs(t, err, &te)
	require.Equal(t, iwarp.TerminateError{Type: 2, Code: 7, Remote: true}, *te)
	<-server.qp.Done()
	require.ErrorContains(t, server.qp.Err(), "not aligned")
	require.Equal(t, make([]byte, 32), mem)
}

func TestEXT_20_ARCH_25_WriteIsThereWhenItsImmediateCompletes(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		client, server := connect(t, pairConfig{network: network})
		ctx := testContext(t)
		const n, rounds = 100 << 10, 50
		src, srcMR := client.register(n, stag.LocalWrite, nil)
		dst, dstMR := server.register(n, stag.LocalWrite|stag.RemoteWrite, nil)
		wcs := make([]iwarp.WC, 1)
		for round := range rounds {
			for i := range src {
				src[i] = byte(i + round)
			}
			require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{ID: uint64(round)}))
			require.NoError(t, client.qp.PostSend(iwarp.SendWR{
				Op: iwarp.OpRDMAWriteImm, Local: []iwarp.SGE{srcMR.Slice(0, n)}, Remote: dstMR.Advertise(0, n), Imm: [8]byte{byte(round)},
			}))
			_, err := server.qp.RecvCQ().Wait(ctx, wcs)
			require.NoError(t, err)
			require.NoError(t, wcs[0].Err())
			require.Equal(t, [8]byte{byte(round)}, wcs[0].Imm)
			require.Equal(t, src, dst, "every octet is there")
			one(t, client.qp.SendCQ(), wcs)
		}
	}
}

// TestEXT_48_49_CountersOfManyStreams: clients of one RNIC add to two counters. Some of them, and code of the server,
// use another STag for them.
func TestEXT_48_49_CountersOfManyStreams(t *testing.T) {
	const clients, each = 6, 300
	client, server := newSide(t, nil), newSide(t, nil)
	mem, mr := server.register(32, stag.LocalWrite|stag.RemoteAtomic, nil)
	again, err := server.pd.RegisterMR(mem, stag.LocalWrite|stag.RemoteAtomic, &iwarp.MROptions{BaseTO: 77})
	require.NoError(t, err)
	file, err := server.pd.RegisterBuffer(&memFile{mem: make([]byte, 32)}, stag.LocalWrite|stag.RemoteAtomic|stag.RemoteRead, nil)
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range clients {
		client.connect(server, pairConfig{})
		qp, at := client.qp, mr.Advertise(8, 8)
		if i%2 == 1 {
			at = again.Advertise(8, 8)
		}
		all.Go(func() {
			ctx := testContext(t)
			seen := uint64(0)
			for range each {
				old, err := qp.FetchAdd(ctx, at, 1)
				if err != nil || old < seen {
					t.Error(err, old, seen)
					return
				}
				seen = old + 1
				if _, err := qp.FetchAdd(ctx, file.Advertise(16, 8), 3); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Go(func() {
		for range each {
			atomic.AddUint64(word(mem, 8), 1)
		}
	})
	all.Wait()
	require.EqualValues(t, (clients+1)*each, *word(mem, 8), "nothing is lost")
	last, err := client.qp.FetchAdd(testContext(t), file.Advertise(16, 8), 0)
	require.NoError(t, err)
	require.EqualValues(t, 3*clients*each, last, "not in a Buffer either")
	require.Equal(t, make([]byte, 8), mem[:8])
	require.Equal(t, make([]byte, 16), mem[16:])
}

// A memFile is a Buffer that does not keep its users apart.
type memFile struct{ mem []byte }

func (f *memFile) Size() int64 { return int64(len(f.mem)) }

func (f *memFile) ReadAt(p []byte, off int64) (int, error)  { return copy(p, f.mem[off:]), nil }
func (f *memFile) WriteAt(p []byte, off int64) (int, error) { return copy(f.mem[off:], p), nil }

// TestCompareSwapMakesALock: each of many clients acquires the lock, and never two at a time.
func TestCompareSwapMakesALock(t *testing.T) {
	const clients, each = 4, 50
	client, server := newSide(t, nil), newSide(t, nil)
	_, mr := server.register(16, stag.LocalWrite|stag.RemoteAtomic, nil)
	at, held := mr.Advertise(8, 8), 0
	var all sync.WaitGroup
	for i := range clients {
		client.connect(server, pairConfig{})
		qp, me := client.qp, uint64(i+1)
		all.Go(func() {
			ctx := testContext(t)
			take := func(from, to uint64) bool {
				prev, err := qp.CompareSwap(ctx, at, from, to)
				if err != nil {
					t.Error(err)
				}
				return err != nil || prev == from
			}
			for range each {
				for !take(0, me) {
					time.Sleep(10 * time.Microsecond)
				}
				held++ // the race detector would notice two
				if !take(me, 0) {
					t.Error("another client has taken it")
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, clients*each, held)
}

func TestCloseAnswersAtomicsFirst(t *testing.T) {
	client, server := connect(t, pairConfig{network: "pipe"})
	mem, mr := server.register(16, stag.LocalWrite|stag.RemoteAtomic, nil)
	cq := client.qp.SendCQ()
	wrs := make([]iwarp.SendWR, 40)
	for i := range wrs {
		wrs[i] = iwarp.SendWR{ID: uint64(i), Op: iwarp.OpFetchAdd, Remote: mr.Advertise(0, 8), Add: 1}
	}
	require.NoError(t, client.qp.PostSend(wrs...))
	require.NoError(t, client.qp.Close())
	for i, wc := range client.completes(cq, len(wrs)) {
		require.NoError(t, wc.Err())
		require.EqualValues(t, i, wc.Old, "one after the other")
	}
	require.EqualValues(t, len(wrs), *word(mem, 0))
	require.ErrorIs(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpImmediate}), net.ErrClosed)
	_, err := client.qp.CompareSwap(context.Background(), mr.Advertise(0, 8), 0, 1)
	require.ErrorIs(t, err, net.ErrClosed)
}
