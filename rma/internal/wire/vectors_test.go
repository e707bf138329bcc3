package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/regionkey"
)

func TestRMA_2_Vectors(t *testing.T) {
	k := newVectorKeys(t)
	n := 0
	for _, s := range samples(t) {
		if s.wire == "" {
			continue
		}
		n++
		msg := unhex(s.wire)
		require.Equal(t, msg, s.build(k, regionkey.SuiteAES128), s.name)
		h, err := Open(msg, s.header.Ctr, s.control(k, regionkey.SuiteAES128))
		require.NoError(t, err, s.name)
		require.Equal(t, s.name, h.Type.String())
		if s.inner != nil {
			require.NoError(t, CheckInner(msg, regionkey.SuiteAES128, s.inner(k)), s.name)
		}
		body := fresh(h.Type)
		require.NoError(t, parse(body, msg), s.name)
		require.Equal(t, s.body, body)
	}
	require.Equal(t, 8, n)
}

func TestRMA_2_EachTypeComesBack(t *testing.T) {
	k := newVectorKeys(t)
	seen := make(map[Type]bool)
	for _, s := range samples(t) {
		for _, suite := range []uint8{Suite0, regionkey.SuiteAES128} {
			before := []byte("before")
			all := s.append(bytes.Clone(before), s.header, s.control(k, suite), k)
			require.Equal(t, before, all[:6], s.name)
			msg := all[6:]
			require.LessOrEqual(t, len(msg), MaxSize)
			h, err := Open(msg, s.header.Ctr, s.control(k, suite))
			require.NoError(t, err, s.name)
			want := s.header
			want.Type = h.Type
			require.Equal(t, want, h)
			require.Equal(t, s.name, h.Type.String())
			require.Len(t, msg, h.Type.Size())
			if s.inner != nil {
				require.NoError(t, CheckInner(msg, suite, s.inner(k)), s.name)
			}
			body := fresh(h.Type)
			require.NoError(t, parseIn(body, msg, suite), s.name)
			if suite != Suite0 {
				require.Equal(t, s.body, body)
			}
			seen[h.Type] = true
		}
	}
	require.Len(t, seen, 12)
}

// TestRMA_2_Layouts places each field of the messages that are not among the vectors, in suite 0.
func TestRMA_2_Layouts(t *testing.T) {
	k := newVectorKeys(t)
	const tag = "00000000000000000000000000000000"
	for name, want := range map[string]string{
		"HELLO": `01 01 00 00 0050 0000 0000000000000000 0000000000000000
			0006 0001 00001000 0040 0000 0007a120 000186a0 0003d090 c0c1c2c3c4c5c6c7c8c9cacbcccdcecf` + tag,
		"OPEN_REQ": `01 02 00 00 0048 0000 0000000000000001 0000000000000001
			1122334455667788 c0c1c2c3c4c5c6c7c8c9cacbcccdcecf 03 00000000000000` + tag,
		"REKEY_REQ": `01 0b 00 00 0070 0000 0000000000000007 000700000000000b
			1122334455667788 00000003 000005dc 00000004 00000000` + tag + tag + tag + tag,
		"REKEY_DONE": `01 0c 00 00 0038 0000 0000000000000008 000700000000000b
			1122334455667788 00000004 00000000` + tag,
	} {
		require.Equal(t, unhex(want), sampleOf(t, name).build(k, Suite0), name)
	}
	// Fields that are zero in the vectors.
	readReq := (&ReadReq{SinkTO: 0x0102030405060708}).Append(nil, Header{}, nil, nil)
	require.Equal(t, octets(1, 8), readReq[48:56])
	writeReq := (&WriteReq{SourceSTag: 0x01020304, SourceTO: 0x1112131415161718}).Append(nil, Header{}, nil, nil)
	require.Equal(t, octets(1, 4), writeReq[48:52])
	require.Equal(t, octets(0x11, 8), writeReq[56:64])
	pull := (&Pull{SinkTO: 0x0102030405060708}).Append(nil, Header{}, nil)
	require.Equal(t, octets(1, 8), pull[48:56])
	for _, msg := range [][]byte{
		(&ReadDone{DataCtr: 0x0102030405060708}).Append(nil, Header{}, nil),
		(&Data{DataCtr: 0x0102030405060708}).Append(nil, Header{}, nil),
	} {
		require.Equal(t, octets(1, 8), msg[24:32])
	}
	status := (&Status{Reason: 0x0102, RetryAfter: 1<<62 - 1}).Append(nil, Header{}, nil)
	require.Equal(t, []byte{1, 2, 0xff, 0xff, 0xff, 0xff}, status[26:32], "as long as can be said")
	status = (&Status{RetryAfter: -1}).Append(nil, Header{}, nil)
	require.Equal(t, make([]byte, 4), status[28:32])
}

// TestRMA_2_RekeyOnTheWire: the octets under the tags of a REKEY_REQ, which is not among the vectors.
func TestRMA_2_RekeyOnTheWire(t *testing.T) {
	k := newVectorKeys(t)
	s := sampleOf(t, "REKEY_REQ")
	secret := octets(0x60, 32)
	clear := s.build(k, Suite0)[:48]
	inner := k.rekeys.Tag(nil, 7, append(bytes.Clone(clear), secret...))
	want := k.client.Seal(bytes.Clone(clear), append(bytes.Clone(secret), inner...), 7, clear)
	require.Equal(t, want, s.build(k, regionkey.SuiteAES128))
}
