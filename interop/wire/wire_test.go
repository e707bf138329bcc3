package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// The octets of the frames, with spaces between fields. CRCs are left out, since they are not read.
const (
	request    = "4d504120494420526571204672616d65 50 02 0004 8001 c001" // A, Write and Read, IRD and ORD 1
	reply      = "4d504120494420526570204672616d65 50 02 0006 8001 8001 abcd"
	replyRead  = "4d504120494420526570204672616d65 50 02 0004 8001 4001"
	rejecting  = "4d504120494420526570204672616d65 70 02 0004 8001 8001"
	request1   = "4d504120494420526571204672616d65 40 01 0000"
	reply1     = "4d504120494420526570204672616d65 40 01 0000"
	clientOnly = "4d504120494420526571204672616d65 50 02 0004 0001 0001" // no A

	emptyWrite = "000e c1 40 00000000 0000000000000000 00000000"
	emptyRead  = "002e 41 41 00000000 00000001 00000001 00000000 " +
		"00000000 0000000000000000 00000000 00000000 0000000000000000 00000000"
	emptySend = "0012 41 43 00000000 00000000 00000001 00000000 00000000"

	longWrite = "0010 c1 40 00000000 0000000000000000 1234 0000 00000000" // two octets, two of padding
	fullRead  = "002e 41 41 00000000 00000001 00000001 00000000 " +
		"00000000 0000000000000000 00000009 00000000 0000000000000000 00000000"
	firstHalf   = "0013 01 45 00000000 00000000 00000001 00000000 aa 000000 00000000" // half of a Send with Solicited Event
	secondHalf  = "0013 41 45 00000000 00000000 00000001 00000001 aa 000000 00000000"
	invalidate  = "0012 41 44 00000001 00000000 00000002 00000000 00000000"
	solicitInv  = "0012 41 46 00000001 00000000 00000003 00000000 00000000"
	tooLong     = "0016 41 47 00000000 00000002 00000001 00000000 12050000 00000000"
	exchanged   = "0016 41 47 00000000 00000002 00000001 00000000 21050000 00000000"
	wrongQueue  = "0016 41 47 00000000 00000000 00000001 00000000 12050000 00000000"
	cutControl  = "0014 41 47 00000000 00000002 00000001 00000000 1205 00000000 0000"
	oldVersion  = "000e c0 40 00000000 0000000000000000 00000000"
	shortHeader = "0002 c140 00000000"
)

const us, them = "10.1.0.1", "10.1.0.2"

func octets(t *testing.T, frames ...string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join(frames, ""), " ", ""))
	require.NoError(t, err)
	return b
}

// A talk is what each end of a connection sends.
type talk struct {
	client, server         string
	fromClient, fromServer []string
}

func weBegin(request, reply string, sent ...string) talk {
	return talk{us, them, append([]string{request}, sent...), []string{reply}}
}

// read makes a capture of the talks and reads it.
func read(t *testing.T, talks ...talk) (*Sent, error) {
	return Read(captureOf(t, talks...), us, "fd00::1")
}

// captureOf makes a capture of the talks.
func captureOf(t *testing.T, talks ...talk) *bytes.Buffer {
	var file bytes.Buffer
	w, err := pcap.NewWriter(&file)
	require.NoError(t, err)
	for i, c := range talks {
		a := netip.AddrPortFrom(netip.MustParseAddr(c.client), uint16(40000+i))
		b := netip.AddrPortFrom(netip.MustParseAddr(c.server), 7174)
		for _, s := range []pcap.Segment{
			{Src: a, Dst: b, Seq: 0, Flags: pcap.SYN},
			{Src: b, Dst: a, Seq: 0, Ack: 1, Flags: pcap.SYN | pcap.ACK},
			{Src: a, Dst: b, Seq: 1, Ack: 1, Flags: pcap.ACK, Payload: octets(t, c.fromClient...)},
			{Src: b, Dst: a, Seq: 1, Ack: 1, Flags: pcap.ACK, Payload: octets(t, c.fromServer...)},
		} {
			require.NoError(t, w.WriteSegment(time.Unix(0, 0), &s))
		}
	}
	return &file
}

func TestTerminateControl(t *testing.T) {
	s, err := read(t, weBegin(request, reply, emptyWrite, tooLong))
	require.NoError(t, err)
	require.Equal(t, []Terminate{{Layer: 1, Type: 2, Code: 5}}, s.Terminates)
	require.Equal(t, "1/2/05", s.Terminates[0].String())

	s, err = read(t, weBegin(request, reply, emptyWrite, exchanged))
	require.NoError(t, err)
	require.Equal(t, []Terminate{{Layer: 2, Type: 1, Code: 5}}, s.Terminates, "layer and type are not guessed")
	for _, bad := range []string{wrongQueue, cutControl} {
		_, err = read(t, weBegin(request, reply, emptyWrite, bad))
		require.ErrorContains(t, err, "a Terminate of")
	}
}

func TestKindsOfSends(t *testing.T) {
	s, err := read(t, weBegin(request, reply, emptyWrite, longWrite, emptySend, firstHalf, secondHalf, invalidate, solicitInv))
	require.NoError(t, err)
	require.Equal(t, []Opcode{Send, SendSolicited, SendInvalidate, SendSolicitedInvalidate}, s.Sends, "a message of two segments is one")
}

func TestReadyToReceive(t *testing.T) {
	s, err := read(t, weBegin(request, reply, emptyWrite, emptySend), weBegin(request, replyRead, emptyRead),
		weBegin(request, rejecting), weBegin(request1, reply1, emptySend), weBegin(clientOnly, reply, emptySend), weBegin(request, reply))
	require.NoError(t, err)
	require.Equal(t, 6, s.Connections)
	require.Equal(t, []Opcode{Write, ReadRequest}, s.RTRs, "and none where none was agreed on, or nothing was sent")
	for _, bad := range []talk{
		weBegin(request, reply, emptyRead), weBegin(request, replyRead, emptyWrite), weBegin(request, reply, emptySend),
		weBegin(request, reply, longWrite), weBegin(request, replyRead, fullRead), weBegin(request, reply, tooLong),
	} {
		_, err := read(t, bad)
		require.ErrorIs(t, err, ErrRTR)
	}
}

func TestOnlyOurEndIsRead(t *testing.T) {
	s, err := read(t, talk{them, us, []string{request, emptyWrite, exchanged}, []string{reply, emptySend, tooLong}},
		talk{them, "10.1.0.3", []string{request, emptyWrite, emptySend}, []string{reply}},
		talk{us, them, nil, nil})
	require.NoError(t, err)
	require.Equal(t, &Sent{Connections: 1, Sends: []Opcode{Send}, Terminates: []Terminate{{Layer: 1, Type: 2, Code: 5}}}, s)
}

func TestWhatIsNoFrameIsAnError(t *testing.T) {
	for why, c := range map[string]talk{
		"in place of":            weBegin(reply, reply, emptyWrite),
		"version 0 of DDP":       weBegin(request, reply, oldVersion),
		"segment of 2 octets":    weBegin(request, reply, shortHeader),
		"enhanced data of 2":     weBegin("4d504120494420526571204672616d65 50 02 0002 8001", reply),
		`"MPA ID Rep Frame"`:     weBegin(request, request, emptyWrite),
		"untagged segment of 14": weBegin(request, reply, "000e 41 43 00000000 0000000000000000 00000000"),
	} {
		_, err := read(t, c)
		require.ErrorContains(t, err, why)
	}
	for _, cut := range []string{request[:20], request[:38]} {
		_, err := read(t, weBegin(cut, reply))
		require.NoError(t, err, "a connection may end at any octet")
	}
	s, err := read(t, weBegin(request, reply, emptyWrite, emptySend[:20]))
	require.NoError(t, err)
	require.Empty(t, s.Sends, "the last FPDU is not whole")
}

// TestCaptures reads what Linux's siw has sent. The layer and the type of its Terminate are equal, so that a swap of the
// two does not show.
func TestCaptures(t *testing.T) {
	for _, c := range []struct {
		name, end string
		want      Sent
	}{
		{"terminate_ddp_bounds", "10.1.0.2", Sent{Connections: 1, Terminates: []Terminate{{Layer: 1, Type: 1, Code: 1}}}},
		{"knob_p2p", "10.1.0.1", Sent{Connections: 1, Sends: []Opcode{Send, Send, Send, Send}, RTRs: []Opcode{Write}}},
		{"knob_p2p", "10.1.0.2", Sent{Connections: 1, Sends: []Opcode{Send, Send, Send, Send}}},
		{"knob_v1", "10.1.0.1", Sent{Connections: 1, Sends: []Opcode{Send}}},
	} {
		file, err := os.Open("../../internal/pcap/testdata/" + c.name + ".pcap")
		require.NoError(t, err)
		have, err := Read(file, c.end)
		require.NoError(t, errors.Join(err, file.Close()))
		require.Equal(t, &c.want, have, c.name)
	}
}

func TestExpect(t *testing.T) {
	write, read := Write, ReadRequest
	tooLong := Terminate{Layer: 1, Type: 2, Code: 5}
	sent := &Sent{Terminates: []Terminate{tooLong}, Sends: []Opcode{Send, SendSolicited}, RTRs: []Opcode{Write, Write}}
	require.NoError(t, Expect{Terminate: &tooLong, Sends: []Opcode{Send, SendSolicited}, RTR: &write}.Check(sent))
	require.NoError(t, Expect{AnyTerminate: true, RTR: &write}.Check(sent), "what is not looked at")
	require.NoError(t, Expect{}.Check(&Sent{Sends: []Opcode{Send}}))

	for _, e := range []Expect{{RTR: &write}, {RTR: &write, Terminate: &Terminate{Layer: 2, Type: 1, Code: 5}}} {
		require.ErrorIs(t, e.Check(sent), ErrTerminate)
	}
	for _, sends := range [][]Opcode{{Send, Send}, {Send}, {}} {
		require.ErrorIs(t, Expect{AnyTerminate: true, RTR: &write, Sends: sends}.Check(sent), ErrSends)
	}
	require.ErrorIs(t, Expect{AnyTerminate: true}.Check(sent), ErrRTR)
	require.ErrorIs(t, Expect{AnyTerminate: true, RTR: &read}.Check(sent), ErrRTR)
}

func TestNothingToLookAtIsAnError(t *testing.T) {
	write := Write
	nothing, err := read(t)
	require.NoError(t, err)
	require.ErrorIs(t, Expect{Terminate: &Terminate{}}.Check(nothing), ErrTerminate)
	require.ErrorIs(t, Expect{Sends: []Opcode{Send}}.Check(nothing), ErrSends)
	require.ErrorIs(t, Expect{RTR: &write}.Check(nothing), ErrRTR)
}
