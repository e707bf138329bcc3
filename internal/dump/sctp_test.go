package dump_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/internal/dump"
)

// packets makes a capture of raw IPv4 packets of SCTP, with a group of chunks in each, over UDP or not. The client sends
// those with an even index.
func packets(overUDP bool, groups ...string) []byte {
	le, be := binary.LittleEndian, binary.BigEndian
	file := le.AppendUint32(nil, 0xa1b23c4d)
	file = append(file, unhex("0200 0400 00000000 00000000 00000400 65000000")...)
	for i, g := range groups {
		src, dst := unhex("0a000001 0a000002"), unhex("9c40 1d2f")
		if i%2 == 1 {
			src, dst = unhex("0a000002 0a000001"), unhex("1d2f 9c40")
		}
		p := append(append(dst, unhex("00000001 00000000")...), unhex(g)...)
		le.PutUint32(p[8:], crc32c.Checksum(p))
		protocol := byte(132)
		if overUDP {
			p = append(append(be.AppendUint16(unhex("26ab 26ab"), uint16(8+len(p))), 0, 0), p...)
			protocol = 17
		}
		ip := append(be.AppendUint16(unhex("4500"), uint16(20+len(p))), 0, 0, 0, 0, 64, protocol, 0, 0)
		ip = append(append(ip, src...), p...)
		file = le.AppendUint32(file, 1)
		file = le.AppendUint32(file, uint32(i)*1e6)
		file = le.AppendUint32(file, uint32(len(ip)))
		file = le.AppendUint32(file, uint32(len(ip)))
		file = append(file, ip...)
	}
	return file
}

// conversation is an association with a session, chunk by chunk.
var conversation = []string{
	"01 00 001c 00000001 00020000 000a 000a 00000001 c0060008 00000001",                                       // INIT
	"02 00 001c 00000001 00020000 000a 000a 00000001 c0060008 00000001",                                       // INIT ACK
	"00 07 0018 00000001 0000 0000 00000011 0000 0005 0010 0008",                                              // Enhanced Initiate
	"00 07 0018 00000001 0000 0000 00000011 0000 0006 0008 0010",                                              // Enhanced Accept
	"00 07 0029 00000002 0000 0000 00000010 0001 41 43 00000000 00000000 00000001 00000000 68656c6c6f 000000", // Send
	"00 07 0022 00000002 0000 0000 00000010 0001 c1 40 11223300 0000000000001000 0000",                        // RDMA Write
	"00 07 0029 00000002 0000 0000 00000010 0001 41 43 00000000 00000000 00000001 00000000 68656c6c6f 000000", // sent again
	"00 03 0014 00000003 0001 0000 00000011 0000 0001 00 07 0014 00000004 0000 0000 00000011 0002 0009",       // not as it must be
	"00 07 0014 00000003 0000 0000 00000011 0002 0004",                                                        // Terminate
	"07 00 0008 00000004", // SHUTDOWN
}

func sctpTape(overUDP bool) []byte { return packets(overUDP, conversation...) }

// TestSCTPWithoutDDP: the only thing reported is that it is not DDP.
func TestSCTPWithoutDDP(t *testing.T) {
	got := lines(t, append(packets(false,
		"01 00 0014 00000001 00020000 000a 000a 00000001", "00 03 0014 00000001 0000 0000 0000002e 00000000", "00 07 00ff 00000001"),
		sctpTape(false)[24:]...), dump.Config{})
	require.Contains(t, got[1], "no adaptation indication: the association cannot carry DDP (RFC 5043 section 5.1)")
	require.Contains(t, got[2], "an SCTP chunk of 255 octets, with 8 left, whose length cannot be")
}

// TestUDPIsNotTakenForSCTP: if the checksum is wrong.
func TestUDPIsNotTakenForSCTP(t *testing.T) {
	capture := bytes.ReplaceAll(sctpTape(true), unhex("68656c6c6f"), []byte("HELLO"))
	for _, line := range lines(t, capture, dump.Config{}) {
		require.NotContains(t, line, "Send QN")
	}
}

// TestChunksAreDecodedOnce: also chunks that are far ahead or out of order.
func TestChunksAreDecodedOnce(t *testing.T) {
	chunk := func(tsn uint32) string {
		b := append(binary.BigEndian.AppendUint32(unhex("0007 0024"), tsn), unhex("0000 0000 00000010 0001 4143 00000000 00000000 00000001 00000000")...)
		return hex.EncodeToString(b)
	}
	var groups []string
	for _, tsn := range []uint32{0xffffffff, 1, 0, 1, 0xffffffff, 5000, 1, 4999, 5000, 5000 + 1<<20, 5000} {
		groups = append(groups, chunk(tsn), "0b000004")
	}
	n := 0
	for _, line := range lines(t, packets(false, groups...), dump.Config{}) {
		if bytes.Contains([]byte(line), []byte("Send QN")) {
			n++
		}
	}
	require.Equal(t, 6, n)
}
