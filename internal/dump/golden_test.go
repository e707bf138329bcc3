package dump_test

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/internal/dump"
)

var update = flag.Bool("update", false, "write the golden files")

// maxGolden is the number of a capture's lines in its golden file.
const maxGolden = 36

// TestGolden: one file for each kind of capture.
func TestGolden(t *testing.T) {
	captures := map[string][]byte{
		"markers": markersTape(), "bad_crc": badCRCTape(), "gap": gapTape(), "hostile": hostileTape(), "sctp": sctpTape(false), "sctp_udp": sctpTape(true),
		"private": privateTape(), "extensions": extensionsTape(), "rsocket": rsocketTape(), "rpcrdma": rpcTape(),
	}
	for _, name := range []string{"rping", "knob_p2p_crc", "knob_v1", "mpa_markers_reject", "terminate_ddp_bounds", "nvme_rdma", "ib_atomic_bw"} {
		b, err := os.ReadFile(filepath.Join("..", "pcap", "testdata", name+".pcap"))
		require.NoError(t, err)
		captures[name] = b
	}
	for name, b := range captures {
		t.Run(name, func(t *testing.T) {
			got := lines(t, b, dump.Config{})
			text := strings.Join(got[:min(len(got), maxGolden)], "\n") + "\n"
			file := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), text, "go test ./internal/dump -update, if this is meant")
		})
	}
}

// markersTape has Markers in both directions, in every possible place.
func markersTape() []byte {
	tp := newTape().opens(frame("Req", markers), frame("Rep", markers))
	var sent []byte
	for i, n := range []int{24, 1000, 470, 484} {
		sent = fpdu(sent, send(uint32(i+1), make([]byte, n)), true)
	}
	tp.says(0, sent)
	bad := fpdu(nil, send(1, make([]byte, 600)), true)
	binary.BigEndian.PutUint32(bad[512:], 4) // points into the payload
	n := len(bad) - 4
	binary.LittleEndian.PutUint32(bad[n:], crc32c.Checksum(bad[:n]))
	return tp.says(1, bad).file.Bytes()
}

// badCRCTape has an FPDU with a wrong CRC, an FPDU after it, and the Terminate.
func badCRCTape() []byte {
	tp := newTape().opens(frame("Req", withCRC), frame("Rep", withCRC))
	bad := fpdu(nil, send(1, []byte("hello")), false)
	bad[24] ^= 1
	tp.says(0, bad).says(0, fpdu(nil, send(2, nil), false))
	return tp.says(1, fpdu(nil, unhex("4147 00000000 00000002 00000001 00000000 20020000"), false)).file.Bytes()
}

// gapTape lacks octets in both directions. In one direction, a CRC makes the next FPDU certain.
func gapTape() []byte {
	tp := newTape().opens(frame("Req", withCRC), frame("Rep", withCRC))
	tp.says(0, fpdu(nil, send(1, []byte("hello")), false)).drops(0, 4000)
	tp.says(0, make([]byte, 300))
	for msn := range uint32(3) {
		tp.says(0, fpdu(nil, send(msn+7, []byte("found")), false))
	}
	tp.says(1, fpdu(nil, send(1, nil), false))
	return tp.says(1, fpdu(nil, send(2, nil), false)[:7]).file.Bytes()
}

// hostileTape breaks the rules of each layer.
func hostileTape() []byte {
	tp := newTape().opens(frame("Req", plain), frame("Rep", plain))
	for _, segment := range []string{
		"4143 00000000 00000000 00000009 00000000",          // MSN
		"4143 00000000 00000001 00000001 00000000",          // queue
		"c143 00000000 0000000000000000",                    // model
		"414e 00000000 00000000 00000002 00000000",          // opcode
		"4203 00000000 00000000 00000002 00000000",          // versions
		"4141 00000000 00000001 00000002 00000000 01",       // Read Request of an octet
		"4147 00000000 00000002 00000001 00000000 12",       // Terminate of an octet
		"4147 00000000 00000002 00000002 00000000 ff770000", // Terminate without a name
		"4143",
		"",
	} {
		tp.says(0, fpdu(nil, unhex(segment), false))
	}
	tp.says(1, fpdu(nil, unhex("4147 00000000 00000002 00000001 00000000 21050300 0017 4143 00000000 00000000 00000001 00000000"), false))
	return tp.says(1, []byte{0xff, 0xff}).file.Bytes()
}

// privateTape has nested blocks in the private data, from the outside in, and a FIN.
func privateTape() []byte {
	inner := append([]byte("commit-00\x00"), unhex("0010 0000000000100000")...)
	inner = append(inner, "hello\n"...)
	req := append([]byte("SCM2"), unhex("01 01 01 01")...)
	req = append(req, make([]byte, 56)...)
	req[15] = 7 // the key
	binary.BigEndian.PutUint16(req[60:], uint16(len(inner)))
	req = append(append(req, inner...), make([]byte, 32)...)
	request := append(frame("Req", "50 02"), binary.BigEndian.AppendUint16(nil, uint16(4+len(req)))...)
	request = append(append(request, unhex("0010 3fff")...), req...)
	rep := append([]byte("SCM2"), unhex("01 01 01 02")...)
	rep = append(rep, make([]byte, 48+32)...)
	reply := append(frame("Rep", "50 02"), binary.BigEndian.AppendUint16(nil, uint16(4+len(rep)))...)
	reply = append(append(reply, unhex("0010 0010")...), rep...)
	fin := append([]byte("SCM2"), append(unhex("01 01 01 03"), make([]byte, 32)...)...)
	tp := newTape().opens(request, reply)
	tp.says(0, fpdu(nil, send(1, fin), false))
	hello := append(unhex("01 01 00 00 0050 0000 0000000000000000 0000000000000000 0002 ffff 00001000 0040 0000 000186a0 00002800 00000000"), make([]byte, 32)...)
	tp.says(0, fpdu(nil, send(2, hello), false))
	read := append(unhex("01 04 01 00 0060 0000 0000000000000001 0003000000000005 0000000000000009 00000002 11223300 0000000000000100 0000000000002000 00000040 000f4240"), make([]byte, 32)...)
	return tp.says(0, fpdu(nil, send(3, read), false)).file.Bytes()
}

// extensionsTape has the messages of RFC 7306 and Commits.
func extensionsTape() []byte {
	tp := newTape().opens(frame("Req", plain), frame("Rep", plain))
	for _, segment := range []string{
		"4148 00000000 00000000 00000001 00000000 0102030405060708",
		"414a 00000000 00000001 00000001 00000000 00000000 00000009 11223300 0000000000001000 0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff",
		"414a 00000000 00000001 00000002 00000000 00000002 0000000a 11223300 0000000000001008 0000000000000005 ffffffffffffffff 0000000000000001 ffffffffffffffff",
		"414c 00000000 00000001 00000003 00000000 00000007 11223344 00000020 0000000000001000",
		"414c 00000000 00000001 00000004 00000000 00000008 00000001 00000003 0000000000000002 00000055 0000000000001008 0102030405060708",
	} {
		tp.says(0, fpdu(nil, unhex(segment), false))
	}
	for _, segment := range []string{
		"414b 00000000 00000003 00000001 00000000 00000009 0000000000000004",
		"414d 00000000 00000003 00000002 00000000 00000007 00000000",
		"414d 00000000 00000003 00000003 00000000 00000008 00000008",
	} {
		tp.says(1, fpdu(nil, unhex(segment), false))
	}
	return tp.file.Bytes()
}

// rsocketTape begins as rcopy does.
func rsocketTape() []byte {
	tp := newTape().opens(
		frame("Req", "10 02 002c 00000001 0102018000000000 0000560fa4b90000 eb2db800 00000002 00007fd116a5f000 e24c6900 00010000"),
		frame("Rep", "10 02 002c 00010000 0103018000000000 00007fe158003000 93135300 00000002 00007fe15c585000 5d15aa00 00010000"))
	for i, message := range []string{"20000000", "80010080", "000000e0", "010000e0", "ffffff2f"} {
		tp.says(0, fpdu(nil, send(uint32(i+1), unhex(message)), false))
	}
	return tp.says(1, fpdu(nil, send(1, unhex("80000180")), false)).file.Bytes()
}

// rpcTape has NFS calls with chunks, and octets that are not a message.
func rpcTape() []byte {
	tp := newTape().opens(frame("Req", "10 02 000c 00800000 f6ab0e1801010303"), frame("Rep", "50 02 000c 00000010 f6ab0e1801000303"))
	const header = "5b65dcd0 00000001 00000080 "
	const segment = "00000002 00001000 0000000000002000 " // handle, length, offset
	for i, message := range []string{
		header + "00000000 00000000 00000000 00000000 5b65dcd0 00000000 00000002 000186a3 00000003 00000006",
		header + "00000000 00000001 00000044 " + segment + "00000000 00000001 00000002 " + segment + segment + "00000000 00000001 00000001 " + segment + "5b65dcd0 00000000 00000002 000186a5 00000003 00000001",
		header + "00000004 00000002",
		header + "00000001 00000001 00000044",
		"5b65dcd0 00000002 00000080 00000000",
		"5b65dcd0",
	} {
		tp.says(0, fpdu(nil, send(uint32(i+1), unhex(message)), false))
	}
	tp.says(1, fpdu(nil, send(1, unhex("5b65dcd0 00000001 00000020 00000000 00000000 00000000 00000000 5b65dcd0 00000001 00000000")), false))
	return tp.says(1, fpdu(nil, send(2, unhex("5b65dcd0 00000001 00000020 00000000 00000000 00000000 00000000 5b65dcd0 00000001 00000001")), false)).file.Bytes()
}
