package wire

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

func TestRMA_6_EachBitOfAMessage(t *testing.T) {
	k := newVectorKeys(t)
	for _, s := range samples(t) {
		msg := s.build(k, regionkey.SuiteAES128)
		c := s.control(k, regionkey.SuiteAES128)
		for bit := range len(msg) * 8 {
			changed := bytes.Clone(msg)
			changed[bit/8] ^= 1 << (bit % 8)
			_, err := Open(changed, s.header.Ctr, c)
			require.Error(t, err, "%s, bit %d", s.name, bit)
			if bit >= headerSize*8 {
				require.ErrorIs(t, err, ErrTag)
			}
		}
		_, err := Open(msg, s.header.Ctr, c)
		require.NoError(t, err)
	}
}

func TestRMA_6_MessagesOfOtherKeys(t *testing.T) {
	k := newVectorKeys(t)
	s := sampleOf(t, "DATA")
	_, err := Open(s.build(k, regionkey.SuiteAES128), s.header.Ctr, k.server)
	require.ErrorIs(t, err, ErrTag, "a message that comes back to its sender")
	_, err = Open(s.build(k, Suite0), s.header.Ctr, k.client)
	require.ErrorIs(t, err, ErrTag, "a message of suite 0")
	_, err = Open(s.build(k, regionkey.SuiteAES128), s.header.Ctr, nil)
	require.ErrorIs(t, err, ErrTag, "a message with a tag, in suite 0")
	for bit := range tagSize * 8 {
		msg := s.build(k, Suite0)
		msg[len(msg)-tagSize+bit/8] ^= 1 << (bit % 8)
		_, err = Open(msg, s.header.Ctr, nil)
		require.ErrorIs(t, err, ErrTag)
	}
}

func TestRMA_7_NumbersOfMessages(t *testing.T) {
	k := newVectorKeys(t)
	for _, suite := range []uint8{Suite0, regionkey.SuiteAES128} {
		s := sampleOf(t, "READ_DONE")
		c := s.control(k, suite)
		for _, want := range []uint64{0, 2, 4, 1 << 63} {
			_, err := Open(s.build(k, suite), want, c)
			require.ErrorIs(t, err, ErrCounter, want)
		}
		_, err := Open(s.build(k, suite), 3, c)
		require.NoError(t, err)
	}
	// To change the number to the right one does not help.
	s := sampleOf(t, "READ_DONE")
	msg := s.build(k, regionkey.SuiteAES128)
	msg[15] = 4
	_, err := Open(msg, 4, s.control(k, regionkey.SuiteAES128))
	require.ErrorIs(t, err, ErrTag)
}

func TestRMA_8_InnerTags(t *testing.T) {
	k := newVectorKeys(t)
	for _, s := range samples(t) {
		if s.inner == nil {
			require.ErrorIs(t, CheckInner(s.build(k, regionkey.SuiteAES128), regionkey.SuiteAES128, k.reads), ErrMalformed, s.name)
			continue
		}
		open := func() []byte {
			msg := s.build(k, regionkey.SuiteAES128)
			_, err := Open(msg, s.header.Ctr, k.client)
			require.NoError(t, err)
			return msg
		}
		msg := open()
		require.NoError(t, CheckInner(msg, regionkey.SuiteAES128, s.inner(k)))
		for bit := range (len(msg) - tagSize) * 8 {
			if bit/8 <= 1 { // version and type say what it is
				continue
			}
			msg[bit/8] ^= 1 << (bit % 8)
			require.ErrorIs(t, CheckInner(msg, regionkey.SuiteAES128, s.inner(k)), ErrInner, "%s, bit %d", s.name, bit)
			msg[bit/8] ^= 1 << (bit % 8)
		}
		for _, other := range []*regionkey.Sealer{k.reads, k.writes, k.rekeys} {
			if other != s.inner(k) {
				require.ErrorIs(t, CheckInner(msg, regionkey.SuiteAES128, other), ErrInner)
			}
		}
	}
}

// TestRMA_9_NoKeyLooksLikeAWrongOne: there is no key for an unknown region.
func TestRMA_9_NoKeyLooksLikeAWrongOne(t *testing.T) {
	k := newVectorKeys(t)
	s := sampleOf(t, "READ_REQ")
	msg := s.build(k, regionkey.SuiteAES128)
	wrong := CheckInner(msg, regionkey.SuiteAES128, k.writes)
	require.ErrorIs(t, wrong, ErrInner)
	require.Equal(t, wrong, CheckInner(msg, regionkey.SuiteAES128, nil))
	// Without a tag it is not accepted either.
	clear(msg[64:80])
	require.Equal(t, wrong, CheckInner(msg, regionkey.SuiteAES128, nil))

	plain := s.build(k, Suite0)
	require.NoError(t, CheckInner(plain, Suite0, nil))
	plain[64] = 1
	require.ErrorIs(t, CheckInner(plain, Suite0, nil), ErrInner)

	// The answers have the same length, whatever the reason.
	a := (&Status{Code: op.RemoteAuth, Reason: op.BadKey, Region: 1}).Append(nil, Header{Op: 1}, k.server)
	b := (&Status{Code: op.RemoteAuth, Reason: op.StaleEpoch, Region: 2, Epoch: 9}).Append(nil, Header{Op: 1}, k.server)
	require.Len(t, a, len(b))
}

// TestRMA_10_OffsetsAreNotJudged: only a request with the right inner tag learns what is outside of a region.
func TestRMA_10_OffsetsAreNotJudged(t *testing.T) {
	k := newVectorKeys(t)
	for _, m := range []ReadReq{
		{Region: 1, Epoch: 1, Offset: 1<<64 - 1, Length: 1<<32 - 1},
		{Region: 1, Epoch: 1, Offset: 1<<64 - 1},
	} {
		msg := m.Append(nil, Header{Op: 1}, k.client, k.reads)
		_, err := Open(msg, 0, k.client)
		require.NoError(t, err)
		var got ReadReq
		require.NoError(t, got.Parse(msg))
		require.Equal(t, m, got)
	}
	m := WriteReq{Region: 1, Epoch: 1, Offset: 1<<64 - 1, Length: 1<<32 - 1}
	msg := m.Append(nil, Header{Op: 1}, nil, nil)
	var got WriteReq
	require.NoError(t, got.Parse(msg, regionkey.SuiteAES128))
	require.Equal(t, m, got)
}

func TestRMA_37_KEY_4_6_Suite0HasNoTagsAndNoKeys(t *testing.T) {
	k := newVectorKeys(t)
	for _, s := range samples(t) {
		msg := s.build(k, Suite0)
		require.Equal(t, make([]byte, tagSize), msg[len(msg)-tagSize:], s.name)
		if s.inner != nil {
			require.Equal(t, make([]byte, tagSize), msg[len(msg)-2*tagSize:len(msg)-tagSize], s.name)
		}
		for _, secret := range [][]byte{k.read[:], k.write[:], octets(0x60, 32)} {
			require.NotContains(t, string(msg), string(secret[:8]), s.name)
		}
	}
}

func TestKEY_4_KeysAreEncryptedAndNotPrinted(t *testing.T) {
	k := newVectorKeys(t)
	rep, rekey := sampleOf(t, "OPEN_REP"), sampleOf(t, "REKEY_REQ")
	for _, s := range []*sample{rep, rekey} {
		msg := s.build(k, regionkey.SuiteAES128)
		for _, secret := range [][]byte{k.read[:], k.write[:], octets(0x60, 32)} {
			require.NotContains(t, string(msg), string(secret[:8]), s.name)
		}
		var b bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&b, nil))
		log.Info("x", "v", s.body)
		for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%d", "%s"} {
			fmt.Fprintf(&b, verb, s.body)
		}
		for _, form := range []string{"606162", "96 97", "96,97", "0x60, 0x61", "e5c9d5", "229 201", "229,201", "0xe5, 0xc9"} {
			require.NotContains(t, b.String(), form, s.name)
		}
	}
}
