package sctp

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
)

// flush sends one segment.
func flush(t *testing.T, c *Conn, segment string) {
	t.Helper()
	require.True(t, c.Append([]byte(segment[:1]), [][]byte{[]byte(segment[1:])}, false))
	require.NoError(t, c.Flush(true))
}

func TestSCTP_6_7_8_10_48_SegmentFollowsItsNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		flush(t, c, "first")
		flush(t, c, "second")
		f.wantSent(t, "16 0001 6669727374", "16 0002 7365636f6e64")
		f.says(17, "0001 0004")
		require.NoError(t, c.Close())
		f.wantSent(t, "17 0003 0004")
	})
}

func TestSCTP_6_10_VectorOfASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		head := octets("4143 00000000 00000000 00000001 00000000")
		require.True(t, c.Append(head, [][]byte{[]byte("hel"), []byte("lo")}, true))
		require.NoError(t, c.Flush(false))
		f.wantSent(t, "16 0001 4143 00000000 00000000 00000001 00000000 68656c6c6f")
		f.says(17, "0001 0004")
		require.NoError(t, c.Close())
	})
}

func TestSCTP_11_12_55_57_LayoutOfControlMessages(t *testing.T) {
	for _, c := range []struct {
		control control
		want    string
	}{
		{control{function: Initiate, private: []byte("abcd")}, "0000000161626364"},
		{control{function: Accept}, "00000002"},
		{control{function: Reject, private: []byte("no")}, "000000036e6f"},
		{control{function: Terminate}, "00000004"},
		{control{function: EnhancedInitiate}, "0000000500000000"},
		{control{function: EnhancedAccept, private: []byte("x")}, "000000060000000078"},
		{control{function: EnhancedReject}, "0000000700000000"},
	} {
		b := c.control.append(nil)
		require.Equal(t, c.want, hex.EncodeToString(b))
		back, err := parseControl(b)
		require.NoError(t, err)
		require.Equal(t, c.control.function, back.function)
		require.True(t, bytes.Equal(c.control.private, back.private))
		for n := range b[:controlSize] {
			_, err := parseControl(b[:n])
			require.Error(t, err, "cut off at %d", n)
		}
	}
	_, err := parseControl(octets("0000 0005 0000"))
	require.Error(t, err, "half of the enhanced data")
}

func TestSCTP_55_57_VectorOfAnEnhancedInitiate(t *testing.T) {
	f := newFake()
	f.says(17, "0000 0006 0008 0010 6869")
	c, terms, err := Connect(context.Background(), f, Options{}, 16, 8, nil)
	require.NoError(t, err)
	f.wantSent(t, "17 0000 0005 0010 0008")
	require.Equal(t, "hi", string(terms.PeerPrivateData))
	require.Equal(t, 16, terms.IRD)
	require.Equal(t, 8, terms.ORD)
	f.says(17, "0001 0004")
	require.NoError(t, c.Close())
}

func TestSCTP_13_58_PrivateDataIsBounded(t *testing.T) {
	for _, c := range []struct {
		plain bool
		limit int
	}{{true, 512}, {false, 508}} {
		f := newFake()
		_, _, err := Connect(context.Background(), f, Options{Plain: c.plain}, 1, 1, make([]byte, c.limit+1))
		require.Error(t, err)
		f.wantSent(t)
		f.wantReleased(t, true)
	}
	for request, limit := range map[string]int{"0000 0001": 512, "0000 0005 0003 0004": 508} {
		f := newFake()
		f.says(17, request)
		r, err := ReadRequest(context.Background(), f)
		require.NoError(t, err)
		require.Error(t, r.Reject(-1, -1, make([]byte, limit+1)))
		f.wantSent(t)
		_, _, err = r.Accept(Options{}, 1, 1, make([]byte, limit+1))
		require.Error(t, err)
		f.wantSent(t)
	}
	for request, limit := range map[string]int{"0000 0001": 512, "0000 0005 0003 0004": 508} {
		f := newFake()
		f.in <- sentMessage{17, append(octets(request), make([]byte, limit)...)}
		r, err := ReadRequest(context.Background(), f)
		require.NoError(t, err)
		require.Len(t, r.PrivateData(), limit, "all that is allowed")

		f = newFake()
		f.in <- sentMessage{17, append(octets(request), make([]byte, limit+1)...)}
		_, err = ReadRequest(context.Background(), f)
		require.ErrorAs(t, err, new(*ViolationError))
		f.wantSent(t, "17 0000 0004")
	}
}

func TestSCTP_14_59_TerminateCarriesNothing(t *testing.T) {
	for _, more := range []string{"00", "0000 0000"} { // an octet, and what an enhanced function would have
		_, err := parseControl(octets("0001 0004" + more))
		require.ErrorAs(t, err, new(*ViolationError))
	}
	synctest.Test(t, func(t *testing.T) {
		for _, o := range []Options{{Plain: true}, {}} {
			f := newFake()
			f.says(17, map[bool]string{true: "0000 0002", false: "0000 0006 0001 0001"}[o.Plain])
			c, _, err := Connect(context.Background(), f, o, 1, 1, nil)
			require.NoError(t, err)
			f.wantSent(t, map[bool]string{true: "17 0000 0001", false: "17 0000 0005 0001 0001"}[o.Plain])
			f.says(17, "0001 0004")
			require.ErrorIs(t, placertest.Receive(c, &placertest.Collector{Want: 1}), io.EOF)
			require.NoError(t, c.Close())
			f.wantSent(t, "17 0001 0004")
		}
	})
}

func TestSCTP_15_16_27_60_RequestReachesTheULP(t *testing.T) {
	f := newFake()
	f.says(17, "0000 0005 0003 0004 6869")
	r, err := ReadRequest(context.Background(), f)
	require.NoError(t, err)
	require.Equal(t, "hi", string(r.PrivateData()))
	require.Equal(t, 3, r.PeerIRD())
	require.Equal(t, 4, r.PeerORD())
	f.wantSent(t)
	r.Close()
	f.wantSent(t, "17 0000 0004")
	f.wantReleased(t, true)
	r.Close()
	f.wantReleased(t, true)

	other := newFake()
	other.says(17, "0000 0005 0001 0001 6e6f206d6f7265")
	_, err = ReadRequest(context.Background(), other)
	require.NoError(t, err)
	require.Equal(t, "hi", string(r.PrivateData()), "it is the ULP's, whatever comes behind")

	for answer, rejects := range map[string]bool{"0000 0006 0007 0002 6869": false, "0000 0007 0007 0002 6869": true} {
		f := newFake()
		f.says(17, answer)
		_, terms, err := Connect(context.Background(), f, Options{}, 4, 8, nil)
		if rejects {
			var rejected *RejectError
			require.ErrorAs(t, err, &rejected)
			require.Equal(t, RejectError{PrivateData: []byte("hi"), IRD: 7, ORD: 2}, *rejected)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []int{7, 2}, []int{terms.PeerIRD, terms.PeerORD})
		require.Equal(t, "hi", string(terms.PeerPrivateData))
	}
}

// TestSCTP_17_18_RequestsThatWaitAreLimited: one too many is answered by a Terminate.
func TestSCTP_17_18_RequestsThatWaitAreLimited(t *testing.T) {
	b := NewBacklog(2, nil)
	ask := func() *fakeStream {
		f := newFake()
		f.says(17, "0000 0001")
		b.Ask(context.Background(), f)
		return f
	}
	for range 2 {
		ask().wantSent(t)
	}
	for range 3 {
		f := ask()
		f.wantSent(t, "17 0000 0004")
		f.wantReleased(t, true)
	}
	_, err := b.Accept()
	require.NoError(t, err)
	ask().wantSent(t)
	ask().wantSent(t, "17 0000 0004")
	last := ask()
	last.wantSent(t, "17 0000 0004")
	require.True(t, b.Close())
	ask().wantSent(t, "17 0000 0004")
}

func TestSCTP_25_26_61_63_RejectOfTheULP(t *testing.T) {
	for request, answer := range map[string]string{
		"0000 0001":           "17 0000 0003 6e6f",
		"0000 0005 0003 0004": "17 0000 0007 0004 0003 6e6f",
	} {
		f := newFake()
		f.says(17, request)
		r, err := ReadRequest(context.Background(), f)
		require.NoError(t, err)
		require.NoError(t, r.Reject(-1, -1, []byte("no")))
		f.wantSent(t, answer)
		f.wantReleased(t, true)
	}
	for request, answer := range map[string]string{
		"0000 0001":           "17 0000 0002 6f6b",
		"0000 0005 0003 0004": "17 0000 0006 0004 0003 6f6b",
	} {
		f := newFake()
		f.says(17, request)
		r, err := ReadRequest(context.Background(), f)
		require.NoError(t, err)
		_, _, err = r.Accept(Options{}, 4, 4, []byte("ok"))
		require.NoError(t, err)
		f.wantSent(t, answer)
	}
	for _, request := range []string{"0000 0001", "0000 0005 0003 0004"} {
		f := newFake()
		f.says(17, request)
		r, err := ReadRequest(context.Background(), f)
		require.NoError(t, err)
		r.Close()
		f.wantSent(t, "17 0000 0004") // without an order of the ULP it is no Reject
	}
}

func TestSCTP_25_61_RejectIsHeard(t *testing.T) {
	for _, c := range []struct {
		answer   string
		plain    bool
		ird, ord int
	}{
		{"0000 0003 6e6f", true, -1, -1},
		{"0000 0003 6e6f", false, -1, -1},
		{"0000 0007 0002 0003 6e6f", false, 2, 3},
		{"0000 0007 6e6f", false, -1, -1},
	} {
		f := newFake()
		f.says(17, c.answer)
		_, _, err := Connect(context.Background(), f, Options{Plain: c.plain}, 1, 1, nil)
		var rejected *RejectError
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, RejectError{PrivateData: []byte("no"), IRD: c.ird, ORD: c.ord}, *rejected)
		f.wantReleased(t, true)
	}
}

func TestSCTP_18_61_TerminateIsNoULPsRefusal(t *testing.T) {
	f := newFake()
	f.says(17, "0000 0004")
	_, _, err := Connect(context.Background(), f, Options{}, 1, 1, nil)
	require.ErrorIs(t, err, ErrRefused)
	f.wantReleased(t, true)
}

// TestSCTP_21_22_28_61_63_REG_11_OtherSequencesEndTheSession: whatever RFC 5043 does not list.
func TestSCTP_21_22_28_61_63_REG_11_OtherSequencesEndTheSession(t *testing.T) {
	t.Run("in answer to an Initiate", func(t *testing.T) {
		for name, says := range map[string]sentMessage{
			"an Initiate":              {17, octets("0000 0001")},
			"an Enhanced Initiate":     {17, octets("0000 0005 0000 0000")},
			"an Enhanced Accept":       {17, octets("0000 0006 0000 0000")},
			"an unknown function":      {17, octets("0000 ffff")},
			"a segment":                {16, octets("0000 41")},
			"a message of one octet":   {17, octets("00")},
			"a foreign protocol":       {18, octets("0000 0002")},
			"a number of the past":     {17, octets("8000 0002")},
			"a control message behind": {17, octets("0001 0002")},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake()
					f.in <- says
					_, _, err := Connect(context.Background(), f, Options{Plain: true}, 1, 1, nil)
					require.ErrorAs(t, err, new(*ViolationError))
					f.wantSent(t, "17 0000 0001", "17 0001 0004")
					close(f.lost)
				})
			})
		}
	})
	t.Run("a plain Accept in answer to an Enhanced Initiate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.in <- sentMessage{17, octets("0000 0002")}
			_, _, err := Connect(context.Background(), f, Options{}, 1, 1, nil)
			require.ErrorAs(t, err, new(*ViolationError))
			f.wantSent(t, "17 0000 0005 0001 0001", "17 0001 0004")
			close(f.lost)
		})
	})
	t.Run("in place of an Initiate", func(t *testing.T) {
		for _, says := range []sentMessage{
			{17, octets("0000 0002")},
			{17, octets("0000 0004")},
			{16, octets("0000 41")},
			{17, octets("0000 0008")},
			{16, octets("0001 41")},
			{17, octets("0001 0004")}, // what came before it
		} {
			f := newFake()
			f.in <- says
			_, err := ReadRequest(context.Background(), f)
			require.ErrorAs(t, err, new(*ViolationError))
			f.wantSent(t, "17 0000 0004")
			f.wantReleased(t, false)
		}
	})
	t.Run("but not a session in any order of arrival", func(t *testing.T) {
		for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			synctest.Test(t, func(t *testing.T) {
				c, f := active(t)
				for _, i := range order {
					f.in <- []sentMessage{{16, octets("0001 41")}, {16, octets("0002 42")}, {17, octets("0003 0004")}}[i]
				}
				p := &placertest.Collector{Want: 9}
				require.ErrorIs(t, placertest.Receive(c, p), io.EOF, "%v", order)
				require.ElementsMatch(t, []uint64{0, 1}, p.Seqs)
				require.NoError(t, c.Close())
			})
		}
	})
	t.Run("within a session", func(t *testing.T) {
		for name, says := range map[string][]sentMessage{
			"a second Accept":            {{17, octets("0001 0002")}},
			"a number twice":             {{16, octets("0002 41")}, {16, octets("0002 41")}},
			"a number twice, far ahead":  {{16, octets("0007 41")}, {16, octets("0002 41")}, {16, octets("0007 41")}},
			"a number of the past":       {{16, octets("0000 41")}},
			"two Terminates":             {{17, octets("0003 0004")}, {17, octets("0002 0004")}},
			"a segment after the end":    {{17, octets("0002 0004")}, {16, octets("0003 41")}},
			"an end before what is here": {{16, octets("0003 41")}, {17, octets("0002 0004")}, {16, octets("0001 41")}},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, f := active(t)
					for _, m := range says {
						f.in <- m
					}
					err := placertest.Receive(c, &placertest.Collector{Want: 9})
					require.ErrorAs(t, err, new(*ViolationError))
					c.Abort(err)
					f.wantSent(t, "17 0001 0004")
					close(f.lost)
				})
			})
		}
	})
}

func TestSCTP_23_24_59_BothSidesTerminate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		f.says(17, "0002 0004")
		f.says(16, "0001 6c617374")
		p := &placertest.Collector{Want: 9}
		require.ErrorIs(t, placertest.Receive(c, p), io.EOF, "when all before it has come")
		require.Equal(t, []string{"last"}, p.Got)
		require.NoError(t, c.CloseSend())
		f.wantSent(t, "17 0001 0004")
		require.NoError(t, c.CloseSend())
		f.wantSent(t)
		require.True(t, c.Append([]byte("x"), nil, true))
		require.Error(t, c.Flush(true), "it was the last message")
		f.wantSent(t)
		require.NoError(t, c.Close())
		synctest.Wait()
		f.wantReleased(t, true)
	})
}

// TestSCTP_30_44_SegmentsOvertakeTheAccept: the initiator holds them back.
func TestSCTP_30_44_SegmentsOvertakeTheAccept(t *testing.T) {
	for _, o := range []Options{{Plain: true}, {}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			connected := make(chan *Conn)
			go func() {
				c, _, err := Connect(context.Background(), f, o, 1, 1, nil)
				require.NoError(t, err)
				connected <- c
			}()
			synctest.Wait()
			f.wantSent(t, map[bool]string{true: "17 0000 0001", false: "17 0000 0005 0001 0001"}[o.Plain])
			select {
			case <-connected:
				require.Fail(t, "the initiator may not send before the Initiate is answered")
			default:
			}
			f.says(17, map[bool]string{true: "0000 0002", false: "0000 0006 0001 0001"}[o.Plain])
			c := <-connected
			flush(t, c, "first")
			f.wantSent(t, "16 0001 6669727374")
			f.says(17, "0001 0004")
			require.NoError(t, c.Close())
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.says(16, "0002 42")
		f.says(16, "0001 41")
		f.says(17, "0000 0002")
		c, _, err := Connect(context.Background(), f, Options{Plain: true}, 1, 1, nil)
		require.NoError(t, err)
		p := &placertest.Collector{Want: 2}
		require.NoError(t, placertest.Receive(c, p))
		require.Equal(t, []uint64{1, 0}, p.Seqs)
		require.Equal(t, []string{"B", "A"}, p.Got)
		f.says(17, "0003 0004")
		require.NoError(t, c.Close())
	})
}

func TestSCTP_47_WhatOvertakesTheAcceptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		for i := range 200 {
			msg := make([]byte, 8000)
			binary.BigEndian.PutUint16(msg, uint16(1+i))
			f.in <- sentMessage{16, msg}
		}
		_, _, err := Connect(context.Background(), f, Options{Plain: true}, 1, 1, nil)
		require.ErrorAs(t, err, new(*ViolationError))
		close(f.lost)
	})
}

func TestSCTP_9_31_StreamsAreGivenBackWhenBothHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		require.NoError(t, c.Close())
		synctest.Wait()
		f.mu.Lock()
		require.Empty(t, f.released, "the peer may still send")
		f.mu.Unlock()
		f.says(16, "0001 41")
		f.says(17, "0002 0004")
		synctest.Wait()
		f.wantReleased(t, true)
	})
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		c.Abort(errors.New("some cause"))
		time.Sleep(drainTime + time.Second)
		f.wantReleased(t, false)
	})
}

func TestSCTP_38_39_42_SegmentsFitAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		require.Equal(t, 1448, c.MaxULPDU())
		require.True(t, c.Append(make([]byte, 14), [][]byte{make([]byte, 1448-14)}, false))
		require.NoError(t, c.Flush(true))
		require.True(t, c.Append(make([]byte, 14), [][]byte{make([]byte, 1449-14)}, false))
		require.Error(t, c.Flush(true), "one octet more is refused")
		f.mu.Lock()
		require.Len(t, f.sent, 1)
		f.mu.Unlock()
		f.says(17, "0001 0004")
		require.NoError(t, c.Close())
	})
	c := newConn(newFake(), session{}, true, 1)
	require.Equal(t, 514, c.MaxULPDU(), "after the DDP-SSN; RFC 5043 counts it")
}

// TestSCTP_45_NumbersGoAround: more than 65536 messages, each of them late by one.
func TestSCTP_45_NumbersGoAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		const n = 1<<16 + 10
		for i := 1; i < n; i += 2 {
			for _, ssn := range []int{i + 1, i} {
				f.in <- sentMessage{16, append(binary.BigEndian.AppendUint16(nil, uint16(ssn)), 0x41)}
			}
		}
		p := &placertest.Collector{Want: n}
		require.NoError(t, placertest.Receive(c, p))
		for i := 0; i < n; i += 2 {
			require.EqualValues(t, i+1, p.Seqs[i])
			require.EqualValues(t, i, p.Seqs[i+1])
		}
		for i := range n {
			c.Append([]byte{byte(i)}, nil, true)
			require.NoError(t, c.Flush(true))
		}
		f.mu.Lock()
		for i, m := range f.sent {
			require.Equal(t, uint16(i+1), binary.BigEndian.Uint16(m.msg))
		}
		f.mu.Unlock()
		f.in <- sentMessage{17, append(binary.BigEndian.AppendUint16(nil, uint16((n+1)&0xffff)), 0, 4)}
		require.NoError(t, c.Close())
	})
}

func TestSCTP_47_SEC_41_NumbersTooFarAheadAreOfThePast(t *testing.T) {
	var a arrivals
	_, err := a.take(window)
	require.NoError(t, err)
	_, err = a.take(window + 1)
	require.Error(t, err)
	for i := range uint16(window) {
		seq, err := a.take(i)
		require.NoError(t, err)
		require.EqualValues(t, i, seq)
	}
	require.EqualValues(t, window+1, a.next)
}

// TestSCTP_46_FlushWaitsForRoom: whatever the ULP does, no more is under way than the
// back end has room for.
func TestSCTP_46_FlushWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		f.set(true, false)
		require.True(t, c.Append([]byte("x"), nil, true))
		require.ErrorIs(t, c.Flush(false), transport.ErrAgain)
		flushed := make(chan error)
		go func() { flushed <- c.Flush(true) }()
		synctest.Wait()
		f.wantSent(t)
		f.set(false, false)
		require.NoError(t, <-flushed)
		f.wantSent(t, "16 0001 78")

		f.set(true, false)
		require.True(t, c.Append([]byte("y"), nil, true))
		go func() { flushed <- c.Flush(true) }()
		synctest.Wait()
		c.Abort(nil)
		require.ErrorIs(t, <-flushed, net.ErrClosed)
		close(f.lost)
	})
}

func TestStalledSegmentComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		f.says(16, "0001 41")
		p := &placertest.Collector{Want: 1, Err: transport.ErrStall}
		for range 3 {
			require.ErrorIs(t, placertest.Receive(c, p), transport.ErrStall)
			buf := readBuffers.Get() // of another session
			clear(buf[:])
			readBuffers.Put(buf)
		}
		p.Err = nil
		require.NoError(t, placertest.Receive(c, p))
		require.Equal(t, []string{"A"}, p.Got)
		f.says(17, "0002 0004")
		require.ErrorIs(t, c.Discard(), io.EOF)
		require.NoError(t, c.Close())
	})
}

func TestContextEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		f := newFake()
		_, err := ReadRequest(ctx, f)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		f.wantSent(t)
		f.wantReleased(t, true)

		f = newFake()
		_, _, err = Connect(ctx, f, Options{}, 1, 1, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(f.lost)
	})
}
