package wiretest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var known = Names{"region": 0x01020304, "sink": 0x05060708}

func TestSegmentsAsText(t *testing.T) {
	for text, octets := range map[string]string{
		`write stag=region to=0x1000 "hi"`:         "c1 40 01020304 0000000000001000 6869",
		`write ddp=0x81 stag=region to=0x0 "x"*5`:  "81 40 01020304 0000000000000000 7878787878",
		`read-response stag=sink to=0x8`:           "c1 42 05060708 0000000000000008",
		`send msn=1 "\x00\xff"`:                    "41 43 00000000 00000000 00000001 00000000 00ff",
		`send ddp=0x01 qn=4 msn=7 mo=9`:            "01 43 00000000 00000004 00000007 00000009",
		`send-invalidate stag=region msn=1`:        "41 44 01020304 00000000 00000001 00000000",
		`send-solicited msn=1`:                     "41 45 00000000 00000000 00000001 00000000",
		`immediate msn=2 "\x00"*8`:                 "41 48 00000000 00000000 00000002 00000000 0000000000000000",
		`untagged rdmap=0x4f msn=1`:                "41 4f 00000000 00000000 00000001 00000000",
		`tagged rdmap=0x47 stag=0x0a0b0c0d to=0x0`: "c1 47 0a0b0c0d 0000000000000000",
		`terminate msn=2 "\x11\x00"`:               "41 47 00000000 00000002 00000002 00000000 1100",
		`read-request msn=1 sink=sink sink-to=0x1 size=2 src=region src-to=0x3`: "41 41 00000000 00000001 00000001 00000000" +
			"05060708 0000000000000001 00000002 01020304 0000000000000003",
	} {
		require.Equal(t, [][]byte{Hex(octets)}, known.Parse(t, text))
		require.Equal(t, text, known.Format(Hex(octets)))
	}
}

func TestTerminateAsText(t *testing.T) {
	const header = "41 47 00000000 00000002 00000001 00000000 "
	bad := known.Parse(t, `read-request msn=2 sink=sink size=8 src=region^1 "more"`)[0]
	require.Equal(t, `terminate 0x1203 of 50 octets: read-request msn=2`, known.Format(Terminate(0x1203, DDPHeader, bad)))
	require.Equal(t, `terminate 0x0100 of 50 octets: read-request msn=2 sink=sink sink-to=0x0 size=8 src=region^1 src-to=0x0`,
		known.Format(Terminate(0x0100, ReadHeader, bad)))
	require.Equal(t, `terminate 0x2002`, known.Format(Terminate(0x2002, NoHeader, nil)))
	for _, octets := range []string{
		"1203 4000 0012 41 43 00000000 00000000 00000001 00000000",    // a header without a length
		"1203 c001 0012 41 43 00000000 00000000 00000001 00000000",    // a reserved bit is set
		"1203 c000 0012 41 43 00000000 00000000 00000001 00000000 00", // an octet too many
		"1203 c000",
	} {
		require.Contains(t, known.Format(Hex(header+octets)), `terminate 0x1203 "`, "what is not as it should be is shown as it is")
	}
}

func TestTextThatIsNoSegment(t *testing.T) {
	none := Names{}.lookup
	for text, want := range map[string]string{
		"":                     "is no segment",
		"writes":               "no kind of segment",
		"write to":             `"to" is no field`,
		"write mo=1":           `a write has no field "mo"`,
		"send msn=one":         "invalid syntax",
		"write stag=unknown":   "invalid syntax",
		`send "open`:           "invalid syntax",
		`send "x"*many`:        "invalid syntax",
		"write stag=unknown^1": "invalid syntax",
	} {
		_, err := parseSegment(text, none)
		require.ErrorContains(t, err, want, text)
	}
	require.Equal(t, "41 43", known.Format(Hex("41 43")))
	cut, err := parseSegment("send first=3", none)
	require.NoError(t, err)
	require.Len(t, cut, 3)
	require.False(t, strings.Contains(known.Format(cut), "send"))
}
