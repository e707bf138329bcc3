package wire

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// fpdu returns an FPDU of a segment, with spaces between fields. The CRC is left out, since it is not read.
func fpdu(t *testing.T, segment string) string {
	n := len(octets(t, segment))
	return fmt.Sprintf("%04x %s %0*d", n, segment, 2*((4-(2+n)%4)%4+4), 0)
}

// sendOf returns an FPDU with a whole message.
func sendOf(t *testing.T, msg string) string {
	return fpdu(t, "41 43 00000000 00000000 00000001 00000000 "+msg)
}

// served checks what our server sends.
func served(t *testing.T, u Upper, frames ...string) error {
	return u.CheckAnswers(captureOf(t, talk{them, us, []string{request}, append([]string{reply}, frames...)}), us)
}

// TestAnswersOf9P: numbers are little-endian. An Rversion has type 101, and an msize after its tag.
func TestAnswersOf9P(t *testing.T) {
	rversion := func(msize string) string { return sendOf(t, "15000000 65 ffff "+msize+" 0800 3950323030302e4c") }
	require.NoError(t, served(t, NineP, rversion("16000000"), sendOf(t, "08000000 75 0100 aa")))
	require.NoError(t, served(t, NineP, rversion("16000000"),
		fpdu(t, "01 43 00000000 00000000 00000002 00000000 080000"), fpdu(t, "41 43 00000000 00000000 00000002 00000003 00 75 0100 aa")), "of two segments")
	for why, frames := range map[string][]string{
		"21 octets, whose size is told as 21, with an msize of 21": {rversion("15000000")},
		"8 octets, whose size is told as 9":                        {rversion("16000000"), sendOf(t, "09000000 75 0100 aa")},
		"22 octets, whose size is told as 22, with an msize of 22": {rversion("16000000"), sendOf(t, "16000000 75 0100 0b000000 000102030405060708090a")},
		"a message of 6 octets":                                    {rversion("16000000"), sendOf(t, "06000000 75 01")},
		"there are none":                                           nil,
	} {
		err := served(t, NineP, frames...)
		require.ErrorIs(t, err, ErrAnswers)
		require.ErrorContains(t, err, why)
	}
}

// TestAnswersOfRPC: a header has a Read list, a Write list and a Reply chunk.
func TestAnswersOfRPC(t *testing.T) {
	const (
		head    = "00000009 00000001 00000020 00000000 00000000 "
		nothing = "00000009 00000001 00000020 00000001 00000000 " // without an RPC message
		failed  = "00000009 00000001 00000020 00000004 00000001 "
	)
	segment := func(stag, length int) string { return fmt.Sprintf("%08x %08x 0000000000001000 ", stag, length) }
	write := func(stag int, data string) string {
		return fpdu(t, fmt.Sprintf("c1 40 %08x 0000000000001000 %s", stag, data))
	}
	none := sendOf(t, head+"00000000 00000000")
	chunkOf := func(n int, behind string) string {
		return sendOf(t, head+"00000001 00000001 "+segment(7, n)+"00000000 00000000 "+behind)
	}
	three := chunkOf(3, "00000003")

	require.NoError(t, served(t, RPC, none, write(7, "616263"), three, write(7, "646566"), three), "an STag may be used again")
	require.NoError(t, served(t, RPC, write(7, "61"), write(7, "6263"), three), "by several Writes")
	require.NoError(t, served(t, RPC, write(7, "616263"), write(8, "61"), sendOf(t, nothing+
		"00000001 00000002 "+segment(7, 3)+segment(9, 0)+"00000000 00000001 00000001 "+segment(8, 1))), "two segments and a Reply chunk")
	require.NoError(t, served(t, RPC, sendOf(t, failed)))
	require.NoError(t, served(t, RPC, chunkOf(0, "00000002")), "an answer without data")
	for why, frames := range map[string][]string{
		"4 octets were written to STag 0x7, and 3 are told": {write(7, "61626300"), three}, // padding
		"a chunk of 4 octets for data of 3":                 {write(7, "61626300"), chunkOf(4, "00000003")},
		"2 octets were written to STag 0x7, and 3 are told": {write(7, "6162"), three},
		"0 octets were written to STag 0x7, and 3 are told": {write(7, "616263"), three, three},
		"1 octets were written to STag 0x8, and 2 are told": {write(8, "61"), sendOf(t, head+"00000000 00000001 00000001 "+segment(8, 2))},
		"a header that is cut":                              {sendOf(t, head+"00000001 00000001 00000007")},
		"there are none":                                    {write(7, "616263")},
	} {
		err := served(t, RPC, frames...)
		require.ErrorIs(t, err, ErrAnswers)
		require.ErrorContains(t, err, why)
	}
	require.ErrorIs(t, served(t, RPC, sendOf(t, "00000009")), ErrAnswers)
}

// TestAnswersOfOurEndAlone: connections that we have begun do not count, nor do connections of others.
func TestAnswersOfOurEndAlone(t *testing.T) {
	file := captureOf(t, weBegin(request, reply, emptySend), talk{them, "10.1.0.3", []string{request}, []string{reply, sendOf(t, "00")}})
	require.ErrorContains(t, NineP.CheckAnswers(file, us), "there are none")
	require.NoError(t, NoUpper.CheckAnswers(captureOf(t, talk{them, us, []string{request}, []string{reply, emptySend}}), us))
}
