package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

// openAndParse does what a receiver does with a message.
func openAndParse(msg []byte, ctr uint64, c *regionkey.Control, suite uint8) (Header, any, error) {
	h, err := Open(msg, ctr, c)
	if err != nil {
		return h, nil, err
	}
	body := fresh(h.Type)
	return h, body, parseIn(body, msg, suite)
}

func TestRMA_2_TruncationsAndExtensions(t *testing.T) {
	k := newVectorKeys(t)
	for _, s := range samples(t) {
		for _, suite := range []uint8{Suite0, regionkey.SuiteAES128} {
			whole := s.build(k, suite)
			refused := func(msg []byte) {
				_, _, err := openAndParse(msg, s.header.Ctr, s.control(k, suite), suite)
				require.ErrorIs(t, err, ErrMalformed, "%s of %d octets", s.name, len(msg))
				require.ErrorIs(t, parseIn(fresh(Type(whole[1])), msg, suite), ErrMalformed)
				require.ErrorIs(t, CheckInner(msg, suite, k.reads), ErrMalformed)
			}
			for n := range whole {
				cut := bytes.Clone(whole[:n:n])
				refused(cut)
				if n >= headerSize { // and says so
					binary.BigEndian.PutUint16(cut[4:], uint16(n))
					refused(cut)
				}
			}
			for n := 1; n <= 256; n++ {
				longer := append(bytes.Clone(whole), make([]byte, n)...)
				refused(longer)
				binary.BigEndian.PutUint16(longer[4:], uint16(len(longer)))
				refused(longer)
			}
			lies := bytes.Clone(whole)
			lies[5]++
			_, err := Open(lies, s.header.Ctr, s.control(k, suite))
			require.ErrorIs(t, err, ErrMalformed)
			_, _, err = openAndParse(whole, s.header.Ctr, s.control(k, suite), suite)
			require.NoError(t, err)
		}
	}
}

func TestRMA_2_HeadersThatAreRefused(t *testing.T) {
	k := newVectorKeys(t)
	for _, c := range []struct {
		of, want string
		change   func([]byte)
	}{
		{"READ_REQ", "version 0", func(b []byte) { b[0] = 0 }},
		{"READ_REQ", "version 2", func(b []byte) { b[0] = 2 }},
		{"READ_REQ", "type 0", func(b []byte) { b[1] = 0 }},
		{"READ_REQ", "type 13", func(b []byte) { b[1] = 13 }},
		{"READ_REQ", "type 255", func(b []byte) { b[1] = 255 }},
		{"READ_REQ", "a PULL of 96 octets", func(b []byte) { b[1] = byte(TypePull) }},
		{"READ_REQ", "of class 2", func(b []byte) { b[2] = 2 }},
		{"READ_REQ", "for operation 0", func(b []byte) { clear(b[16:24]) }},
		{"STATUS", "for operation 0", func(b []byte) { clear(b[16:24]) }},
		{"HELLO", "for operation 1", func(b []byte) { b[23] = 1 }},
	} {
		s := sampleOf(t, c.of)
		msg := s.build(k, Suite0)
		c.change(msg)
		_, err := Open(msg, s.header.Ctr, nil)
		require.ErrorIs(t, err, ErrMalformed)
		require.ErrorContains(t, err, c.want)
	}
	// A valid message is not read as one of another type, even of the same length.
	for _, s := range samples(t) {
		msg := s.build(k, Suite0)
		for other := TypeHello; other <= TypeRekeyDone; other++ {
			if other.String() != s.name {
				require.ErrorContains(t, parseIn(fresh(other), msg, Suite0), "not a "+other.String())
			}
		}
	}
}

func TestRMA_2_BodiesThatAreRefused(t *testing.T) {
	k := newVectorKeys(t)
	u16 := func(at int, v uint16) func([]byte) { return func(b []byte) { binary.BigEndian.PutUint16(b[at:], v) } }
	u32 := func(at int, v uint32) func([]byte) { return func(b []byte) { binary.BigEndian.PutUint32(b[at:], v) } }
	u64 := func(at int, v uint64) func([]byte) { return func(b []byte) { binary.BigEndian.PutUint64(b[at:], v) } }
	u8 := func(at int, v uint8) func([]byte) { return func(b []byte) { b[at] = v } }
	for _, c := range []struct {
		of, want string // "": it is right
		change   func([]byte)
	}{
		{"HELLO", "operations of 511 octets", u32(28, 511)},
		{"HELLO", "", u32(28, 512)},
		{"HELLO", "", u32(28, 65536)},
		{"HELLO", "operations of 65537 octets", u32(28, 65537)},
		{"HELLO", "chooses suite 2 and offers 0x0002", func(b []byte) { b[25], b[27] = 2, 2 }},
		{"HELLO", "chooses suite 0 ", u8(27, 0)},
		{"HELLO", "chooses suite 16 ", u16(26, 16)},
		{"HELLO", "chooses suite 65534 ", u16(26, 0xfffe)},
		{"HELLO", "", u16(26, 0xffff)},
		{"HELLO", "", u16(24, 0xffff)},
		{"HELLO", "", u16(32, 0)},
		{"HELLO", "a pull timeout of 999µs", u32(36, 999)},
		{"HELLO", "", u32(36, 1000)},
		{"HELLO", "a pull timeout of 30.000001s", u32(36, 30_000_001)},
		{"HELLO", "", u32(36, 30_000_000)},
		{"HELLO", "a guard of 10.499ms, where 10.5ms to 30s are possible", u32(40, 10_499)},
		{"HELLO", "", u32(40, 10_500)},
		{"HELLO", "", u32(40, 30_000_000)},
		{"HELLO", "a guard of 30.000001s", u32(40, 30_000_001)},
		{"HELLO", "a linger time of 10.000001s", u32(44, 10_000_001)},
		{"HELLO", "", u32(44, 10_000_000)},
		{"HELLO", "", u32(44, 0)},
		{"OPEN_REQ", "kinds of operations 0x00", u8(48, 0)},
		{"OPEN_REQ", "kinds of operations 0x08", u8(48, 8)},
		{"OPEN_REQ", "kinds of operations 0x81", u8(48, 0x81)},
		{"OPEN_REQ", "", u8(48, 7)},
		{"OPEN_REP", "kinds of operations 0x00", u8(48, 0)},
		{"OPEN_REP", "kinds of operations 0x0b", u8(48, 0x0b)},
		{"OPEN_REP", "epoch 0", u32(32, 0)},
		{"OPEN_REP", "a key for operations that are not granted", u8(151, 1)},
		{"OPEN_REP", "", u8(119, 1)},
		{"READ_REQ", "epoch 0", u32(32, 0)},
		{"READ_REQ", "", u64(40, 1<<64-1)},
		{"READ_REQ", "", u32(56, 1<<32-1)},
		{"READ_REQ", "", u32(56, 0)},
		{"READ_DONE", "epoch 0", u32(36, 0)},
		{"READ_DONE", "data with the number 281474976710656", u64(24, 1<<48)},
		{"READ_DONE", "", u64(24, 1<<48-1)},
		{"WRITE_REQ", "epoch 0", u32(32, 0)},
		{"WRITE_REQ", "names its source, in suite 1", u8(48, 1)},
		{"WRITE_REQ", "names its source, in suite 1", u8(63, 1)},
		{"WRITE_REQ", "", u64(40, 1<<64-1)},
		{"PULL", "a PULL without a sink, in suite 1", u32(40, 0)},
		{"PULL", "a pull timeout of 999µs", u32(56, 999)},
		{"PULL", "a pull timeout of 30.000001s", u32(56, 30_000_001)},
		{"DATA", "data with the number", u8(24, 0x80)},
		{"WRITE_DONE", "epoch 0", u32(44, 0)},
		{"STATUS", "a STATUS without a failure", u16(24, 0)},
		{"STATUS", "", u16(24, 0xffff)},
		{"STATUS", "", u16(26, 0xffff)},
		{"STATUS", "", u32(40, 0)},
		{"REKEY_REQ", "epoch 0", u32(32, 0)},
		{"REKEY_REQ", "", u32(40, 0)},
		{"REKEY_DONE", "epoch 0", u32(32, 0)},
	} {
		msg := sampleOf(t, c.of).build(k, Suite0)
		c.change(msg)
		err := parse(fresh(Type(msg[1])), msg)
		if c.want == "" {
			require.NoError(t, err, c.of)
			continue
		}
		require.ErrorIs(t, err, ErrMalformed)
		require.ErrorContains(t, err, c.want)
	}
	// Only suite 0 has these.
	for name, change := range map[string]func([]byte){"WRITE_REQ": u8(48, 1), "PULL": u32(40, 0)} {
		msg := sampleOf(t, name).build(k, Suite0)
		change(msg)
		require.NoError(t, parseIn(fresh(Type(msg[1])), msg, Suite0))
	}
	// Only suite 0 does not have this: nothing would hide the key.
	for at := 48; at < 80; at++ {
		msg := sampleOf(t, "REKEY_REQ").build(k, Suite0)
		clear(msg[48:80])
		require.NoError(t, parseIn(fresh(TypeRekeyReq), msg, Suite0))
		msg[at] = 1
		require.ErrorContains(t, parseIn(fresh(TypeRekeyReq), msg, Suite0), "a secret, in suite 0")
	}
}

func TestRMA_2_ReservedOctets(t *testing.T) {
	k := newVectorKeys(t)
	for name, reserved := range map[string][][2]int{
		"HELLO": {{34, 36}}, "OPEN_REQ": {{49, 56}}, "OPEN_REP": {{36, 40}, {49, 56}}, "READ_REQ": nil, "READ_DONE": nil,
		"WRITE_REQ": {{52, 56}}, "PULL": {{60, 64}}, "DATA": {{36, 40}}, "WRITE_DONE": nil, "STATUS": {{44, 48}},
		"REKEY_REQ": {{44, 48}}, "REKEY_DONE": {{36, 40}},
	} {
		s := sampleOf(t, name)
		// Octets from an earlier use are not sent.
		dirty := bytes.Repeat([]byte{0xff}, MaxSize)
		msg := s.append(dirty[:0], s.header, nil, k)
		_, want, err := openAndParse(msg, s.header.Ctr, nil, Suite0)
		require.NoError(t, err)
		for _, r := range append(reserved, [2]int{3, 4}, [2]int{6, 8}) {
			for i := r[0]; i < r[1]; i++ {
				require.Zero(t, msg[i], "%s at %d", name, i)
				msg[i] = 0xff
			}
		}
		_, got, err := openAndParse(msg, s.header.Ctr, nil, Suite0)
		require.NoError(t, err, "they are not looked at")
		require.Equal(t, want, got)

		// They are under the tag.
		msg = s.build(k, regionkey.SuiteAES128)
		msg[6] ^= 1
		_, err = Open(msg, s.header.Ctr, s.control(k, regionkey.SuiteAES128))
		require.ErrorIs(t, err, ErrTag)
	}
}

func TestRMA_4_ChoiceOfASuite(t *testing.T) {
	const s0, s1, s2 = 1, 2, 4
	for _, c := range []struct {
		a, b uint16
		want int // -1: none
	}{
		{s1 | s2, s1 | s2, 1},
		{s1 | s2, s2, 2}, // one side demands it
		{s2, s0 | s1 | s2, 2},
		{s0 | s1 | s2, s0 | s1 | s2, 1},
		{s0 | s1, s0 | s2, 0},
		{s0 | s2, s0 | s2, 2},
		{s0, s0 | s1, 0},
		{s0, s1 | s2, -1}, // the other side does not set Insecure
		{s1, s2, -1},
		{0, 0xffff, -1},
		{0xfff8, 0xfff8, -1}, // unknown suites
		{0xfffa, s1, 1},
	} {
		for _, order := range [][2]uint16{{c.a, c.b}, {c.b, c.a}} {
			got, err := ChooseSuite(order[0], order[1])
			if c.want < 0 {
				require.ErrorIs(t, err, ErrNoSuite)
				require.ErrorContains(t, err, fmt.Sprintf("%#04x and %#04x are offered", order[0], order[1]))
				continue
			}
			require.NoError(t, err)
			require.EqualValues(t, c.want, got)
		}
	}
	require.EqualValues(t, s2, Offer(regionkey.SuiteAES256))

	m := Hello{Offered: s0 | s1 | s2, Chosen: 1}
	suite := func(offered uint16, answer bool) error {
		_, err := m.Suite(offered, answer)
		return err
	}
	require.NoError(t, suite(s1|s2, true))
	require.ErrorContains(t, suite(s2, true), "suite 1 was chosen, where 2 is right")
	require.ErrorIs(t, suite(8, true), ErrNoSuite)
	require.ErrorIs(t, suite(s1, false), ErrMalformed, "the first HELLO chooses none")
	m.Chosen = 0
	require.ErrorIs(t, suite(s0|s1, true), ErrMalformed, "not a weaker one than is possible")
	m.Chosen = NoSuite
	require.ErrorIs(t, suite(s1, true), ErrMalformed)
	require.NoError(t, suite(s1, false))
	require.Equal(t, 10*time.Millisecond+500*time.Microsecond, op.MinGuard(500*time.Millisecond))
}

// TestLeastGuardIsRight: the peer accepts it, even if it is not a whole number of microseconds.
func TestLeastGuardIsRight(t *testing.T) {
	for _, pull := range []time.Duration{time.Millisecond, 20_500 * time.Microsecond, 1_234_567, MaxPullTimeout - 1} {
		m := Hello{Chosen: NoSuite, MaxOp: MinMaxOp, PullTimeout: pull, Guard: op.MinGuard(pull)}
		var got Hello
		require.NoError(t, got.Parse(m.Append(nil, Header{}, nil)))
		require.GreaterOrEqual(t, got.Guard, m.Guard)
	}
}

func TestRMA_2_KindsOfOperations(t *testing.T) {
	require.Equal(t, OpRead, OpsOf(regionkey.Read))
	require.Equal(t, OpWrite, OpsOf(regionkey.Write))
	require.Equal(t, OpManage, OpsOf(regionkey.Manage))
	var rep OpenRep
	rep.Key(regionkey.Manage)[0] = 1
	require.EqualValues(t, 1, rep.Keys[2][0])
	require.Equal(t, "type 13", Type(13).String())
}

func TestMessagesAllocateNothing(t *testing.T) {
	k := newVectorKeys(t)
	buffer := make([]byte, 0, MaxSize)
	h := Header{Ctr: 1, Op: 1}
	open, rep := &OpenReq{Ops: OpRead}, &OpenRep{Epoch: 1, Ops: OpRead}
	read, done := &ReadReq{Epoch: 1}, &ReadDone{Epoch: 1}
	write, pull := &WriteReq{Epoch: 1}, &Pull{SinkSTag: 1, Timeout: time.Second}
	data, written := &Data{}, &WriteDone{Epoch: 1}
	status, rekey, rekeyed := &Status{Code: op.NACK}, &RekeyReq{Epoch: 1}, &RekeyDone{Epoch: 1}
	for name, step := range map[string]func(c *regionkey.Control) error{
		"OPEN_REQ":   func(c *regionkey.Control) error { buffer = open.Append(buffer[:0], h, c); return nil },
		"OPEN_REP":   func(c *regionkey.Control) error { buffer = rep.Append(buffer[:0], h, c); return nil },
		"READ_REQ":   func(c *regionkey.Control) error { buffer = read.Append(buffer[:0], h, c, k.reads); return nil },
		"READ_DONE":  func(c *regionkey.Control) error { buffer = done.Append(buffer[:0], h, c); return nil },
		"WRITE_REQ":  func(c *regionkey.Control) error { buffer = write.Append(buffer[:0], h, c, k.reads); return nil },
		"PULL":       func(c *regionkey.Control) error { buffer = pull.Append(buffer[:0], h, c); return nil },
		"DATA":       func(c *regionkey.Control) error { buffer = data.Append(buffer[:0], h, c); return nil },
		"WRITE_DONE": func(c *regionkey.Control) error { buffer = written.Append(buffer[:0], h, c); return nil },
		"STATUS":     func(c *regionkey.Control) error { buffer = status.Append(buffer[:0], h, c); return nil },
		"REKEY_REQ":  func(c *regionkey.Control) error { buffer = rekey.Append(buffer[:0], h, c, k.reads); return nil },
		"REKEY_DONE": func(c *regionkey.Control) error { buffer = rekeyed.Append(buffer[:0], h, c); return nil },
	} {
		for _, c := range []*regionkey.Control{nil, k.client} {
			require.Zero(t, testing.AllocsPerRun(100, func() {
				if err := step(c); err != nil {
					t.Fatal(err)
				}
				if err := readAgain(buffer, c, k); err != nil {
					t.Fatal(err)
				}
			}), name)
		}
	}
}

// readAgain opens, checks and reads a message like a receiver.
func readAgain(msg []byte, c *regionkey.Control, k *vectorKeys) error {
	h, err := Open(msg, 1, c)
	if err != nil {
		return err
	}
	suite := regionkey.SuiteAES128
	if c == nil {
		suite = Suite0
	}
	if h.Type == TypeReadReq || h.Type == TypeWriteReq || h.Type == TypeRekeyReq {
		if err := CheckInner(msg, suite, k.reads); err != nil {
			return err
		}
	}
	switch h.Type {
	case TypeOpenReq:
		return new(OpenReq).Parse(msg)
	case TypeOpenRep:
		return new(OpenRep).Parse(msg)
	case TypeReadReq:
		return new(ReadReq).Parse(msg)
	case TypeReadDone:
		return new(ReadDone).Parse(msg)
	case TypeWriteReq:
		return new(WriteReq).Parse(msg, suite)
	case TypePull:
		return new(Pull).Parse(msg, suite)
	case TypeData:
		return new(Data).Parse(msg)
	case TypeWriteDone:
		return new(WriteDone).Parse(msg)
	case TypeStatus:
		return new(Status).Parse(msg)
	case TypeRekeyReq:
		return new(RekeyReq).Parse(msg, suite)
	default:
		return new(RekeyDone).Parse(msg)
	}
}
