package cm

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func sampleRequest(s Suite) []byte {
	q := request{suite: s, mode: ModeB, keyID: 7, clientID: testClientID, nonce: [16]byte(octets(0xa0, 16)), qpID: 9, public: octets(1, s.publicLen()), app: []byte("hello")}
	return append(q.append(nil), octets(0, macSize)...)
}

func sampleReply(s Suite) []byte {
	p := reply{suite: s, mode: ModeA, serverID: testServerID, time: 1, nonce: [16]byte(octets(0xb0, 16)), qpID: 9, public: octets(1, s.publicLen()), app: []byte("world")}
	return append(p.append(nil), octets(0, macSize)...)
}

func sampleFirst() []byte {
	return append(firstHeader(SuiteHMAC, ModeB), octets(0, macSize)...)
}

func sampleRefusal(c Code, app string) []byte {
	j := refusal{code: c, signed: c.signed(), keyHint: 8}
	b := j.append(nil)
	if c.signed() {
		b = append(b, octets(0, macSize)...)
	}
	return append(b, app...)
}

func parseRequestOnly(b []byte) error { _, err := parseRequest(b); return err }
func parseReplyOnly(b []byte) error   { _, err := parseReply(b); return err }
func parseRefusalOnly(b []byte) error { _, err := parseRefusal(b); return err }
func parseFirstOnly(b []byte) error   { _, _, _, err := parseFirst(b); return err }

// samples are blocks of all types, with their parsers.
var samples = []struct {
	name  string
	block []byte
	parse func([]byte) error
}{
	{"Request, suite 1", sampleRequest(SuiteHMAC), parseRequestOnly},
	{"Request, suite 2", sampleRequest(SuiteX25519), parseRequestOnly},
	{"Reply, suite 1", sampleReply(SuiteHMAC), parseReplyOnly},
	{"Reply, suite 2", sampleReply(SuiteX25519), parseReplyOnly},
	{"first message", sampleFirst(), parseFirstOnly},
	{"refusal", sampleRefusal(CodeRefused, ""), parseRefusalOnly},
	{"refusal of a retired key", sampleRefusal(CodeKeyRetired, ""), parseRefusalOnly},
}

func TestCM_2_TruncationsAndExtensions(t *testing.T) {
	for _, s := range samples {
		require.NoError(t, s.parse(s.block), s.name)
		for n := range s.block {
			require.Error(t, s.parse(s.block[:n:n]), "%s cut to %d octets", s.name, n)
		}
		for n := 1; n < 64; n++ {
			require.Error(t, s.parse(append(bytes.Clone(s.block), make([]byte, n)...)), "%s with %d octets more", s.name, n)
		}
	}
	// The application's data follow the MAC of a refusal.
	whole := sampleRefusal(CodeApplication, "because")
	for n := range len(whole) {
		err := parseRefusalOnly(whole[:n:n])
		require.Equal(t, n >= refusalSize+macSize, err == nil, n)
	}
}

func TestCM_2_FieldsOutOfRange(t *testing.T) {
	for _, c := range []struct {
		name, want string
		at         int
		value      byte
	}{
		{"magic", "do not begin with SCM2", 0, 'T'},
		{"version", "version 2", 4, 2},
		{"suite", "suite 3", 5, 3},
		{"suite", "suite 0", 5, 0},
		{"flags", "unknown flags 0x02", 6, 2},
		{"flags", "unknown flags 0x81", 6, 0x81},
		{"type", "a block of type 9", 7, 9},
		{"length", "octets of private data of the application", 60, 0xff},
		{"length", "octets of private data of the application", 61, 4},
	} {
		b := sampleRequest(SuiteHMAC)
		b[c.at] = c.value
		require.ErrorContains(t, parseRequestOnly(b), c.want, c.name)
	}
	for _, c := range []struct {
		code  Code
		at    int
		value byte
		want  string
	}{
		{CodeRefused, 8, 0, "a refusal with code 0"},
		{CodeRefused, 8, 7, "a refusal with code 7"},
		{CodeRefused, 6, flagSigned, "flags 0x80"},
		{CodeKeyRetired, 6, 0, "flags 0x00"},
		{CodeRefused, 5, 1, "suite 1"},
		{CodeRefused, 7, 2, "type 2"},
	} {
		b := sampleRefusal(c.code, "")
		b[c.at] = c.value
		require.ErrorContains(t, parseRefusalOnly(b), c.want)
	}
	first := sampleFirst()
	first[7] = byte(typeReply)
	require.ErrorContains(t, parseFirstOnly(first), "type 2")
}

func TestCM_2_LongFieldsAllocateNothing(t *testing.T) {
	b := sampleRequest(SuiteHMAC)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		q, err := parseRequest(b)
		if err != nil || len(q.app) != 5 {
			t.Fatal(err)
		}
	}))
	b[60], b[61] = 0xff, 0xff
	require.Less(t, testing.AllocsPerRun(100, func() { _ = parseRequestOnly(b) }), 10.0) // the error
}

func TestCM_5_ReservedOctets(t *testing.T) {
	b := sampleRequest(SuiteHMAC)
	require.Equal(t, []byte{0, 0}, b[62:64])
	b[62], b[63] = 1, 2
	require.NoError(t, parseRequestOnly(b))
	b = sampleReply(SuiteHMAC)
	require.Equal(t, []byte{0, 0}, b[54:56])
	b[54], b[55] = 1, 2
	require.NoError(t, parseReplyOnly(b))
	b = sampleRefusal(CodeRefused, "")
	require.Equal(t, []byte{0, 0, 0}, b[9:12])
	b[9] = 1
	require.NoError(t, parseRefusalOnly(b))

	// They are covered by the MAC. A client of a later version may set them.
	s := siteOf(t, nil)
	i := s.initiate()
	frame := s.request(i)
	frame[frameOff+62] = 1
	s.refused(frame, ReasonBadMAC)
	covered := len(frame) - macSize
	frame = append(frame[:covered], i.keys.request.sum(frame[:covered])...)
	_, err := s.respond().Open(frame, frameOff)
	require.NoError(t, err)
}

func TestFramesRoundTrip(t *testing.T) {
	for _, suite := range []Suite{SuiteHMAC, SuiteX25519} {
		b := sampleRequest(suite)
		q, err := parseRequest(b)
		require.NoError(t, err)
		require.Equal(t, b[:len(b)-macSize], q.append(nil))
		b = sampleReply(suite)
		p, err := parseReply(b)
		require.NoError(t, err)
		require.Equal(t, b[:len(b)-macSize], p.append(nil))
	}
}
