package dump_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/dump"
	"github.com/goiwarp/iwarp/internal/pcap"
)

// sends returns FPDUs with Sends of n octets each.
func sends(count, n int, markers bool) (sent []byte) {
	for i := range count {
		sent = fpdu(sent, send(uint32(i+1), bytes.Repeat([]byte{byte(i)}, n)), markers)
	}
	return sent
}

// withoutPackets returns lines without the packet and the time.
func withoutPackets(lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, line[18:])
	}
	return out
}

// TestOrderOfSegments: how TCP cuts and reorders the octets does not show in the decoded text.
func TestOrderOfSegments(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		flags := withCRC
		if seed%2 == 1 {
			flags = markers
		}
		sent := sends(12, 300, seed%2 == 1)
		want := withoutPackets(lines(t, newTape().opens(frame("Req", flags), frame("Rep", flags)).says(0, sent).file.Bytes(), dump.Config{}))
		require.Len(t, want, 3+12)

		tp := newTape().opens(frame("Req", flags), frame("Rep", flags))
		type part struct{ at, end int }
		var parts []part
		for at := 0; at < len(sent); {
			end := min(len(sent), at+1+r.IntN(700))
			parts = append(parts, part{max(0, at-r.IntN(100)), end}) // some of these octets were sent before
			if r.IntN(4) == 0 {
				parts = append(parts, part{at, end})
			}
			at = end
		}
		// Without the peer's acknowledgements nothing counts as missing.
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		for _, p := range parts {
			tp.segment(0, tp.next[0]+uint32(p.at), pcap.ACK, sent[p.at:p.end])
		}
		require.Equal(t, want, withoutPackets(lines(t, tp.file.Bytes(), dump.Config{})), "seed %d", seed)
	}
}

// TestAcknowledgementThatWasOvertaken: the later one has shown already that the octets before it are missing in the capture.
func TestAcknowledgementThatWasOvertaken(t *testing.T) {
	sent := sends(8, 300, false)
	tp := newTape().opens(frame("Req", withCRC), frame("Rep", withCRC)).says(0, sent[:50])
	for _, acked := range []uint32{310, 0} {
		tp.next[0] += acked
		tp.segment(1, tp.next[1], pcap.ACK, nil)
		tp.next[0] -= acked
	}
	for at := 10; at < 310; at += 100 {
		tp.segment(0, tp.next[0]+uint32(at), pcap.ACK, sent[50+at:150+at])
	}
	tp.says(1, sends(1, 1, false))
	got := strings.Join(lines(t, tp.file.Bytes(), dump.Config{}), "\n")
	gap, answer := strings.Index(got, "10 octets missing in the capture"), strings.Index(got, "< Send")
	require.Positive(t, gap, got)
	require.Less(t, gap, answer, got)
}

// TestGapsWithMarkers: the next Marker shows where an FPDU begins.
func TestGapsWithMarkers(t *testing.T) {
	sent := sends(40, 300, true)
	for from := 1; from < 6000; from += 613 {
		tp := newTape().opens(frame("Req", markers), frame("Rep", markers))
		tp.says(0, sent[:from]).drops(0, 1000).says(0, sent[from+1000:]).says(1, sends(1, 1, true))
		got := strings.Join(lines(t, tp.file.Bytes(), dump.Config{}), "\n")
		require.Contains(t, got, "1000 octets missing in the capture")
		require.Contains(t, got, "octets not decoded, up to the next FPDU that is certain")
		require.Contains(t, got, "> Send QN 0 MSN 40 ")
		require.NotContains(t, got, "!", "nothing that is no FPDU is taken for one")
		require.GreaterOrEqual(t, strings.Count(got, "> Send"), 40-6)
	}
}

// TestCertainOnly: without CRCs and Markers, nothing after a gap is decoded.
func TestCertainOnly(t *testing.T) {
	sent := sends(5, 100, false)
	tp := newTape().opens(frame("Req", plain), frame("Rep", plain)).says(0, sent[:100]).drops(0, 100).says(0, sent[200:])
	got := strings.Join(lines(t, tp.file.Bytes(), dump.Config{}), "\n")
	require.Contains(t, got, "without CRCs and Markers it is not certain where the next FPDU begins")
	require.Contains(t, got, fmt.Sprintf("%d octets not decoded", len(sent)-100))
	require.NotContains(t, got, "Send")
}

// TestGapBehindTheRequest: the Reply comes later, and determines how to read the octets after the gap.
func TestGapBehindTheRequest(t *testing.T) {
	for flags, want := range map[string]string{withCRC: "Send QN 0 MSN 2 MO 0, 100 octets, last, CRC valid", markers: "> Send QN 0 MSN 12 MO 0"} {
		sent := sends(20, 100, flags == markers)
		tp := newTape()
		tp.segment(0, tp.next[0]-1, pcap.SYN, nil)
		tp.segment(1, tp.next[1]-1, pcap.SYN|pcap.ACK, nil)
		tp.says(0, frame("Req", flags)).drops(0, len(sends(1, 100, flags == markers)))
		sent = sent[len(sends(1, 100, flags == markers)):]
		for len(sent) > 0 { // each one acknowledged, so that the gap is known before the Reply
			n := min(len(sent), len(sends(1, 100, false)))
			tp.says(0, sent[:n])
			sent = sent[n:]
			tp.segment(1, tp.next[1], pcap.ACK, nil)
		}
		tp.says(1, frame("Rep", flags))
		require.Contains(t, strings.Join(lines(t, tp.file.Bytes(), dump.Config{}), "\n"), want, flags)
	}
}

// TestMidway: a capture that begins later is decoded from where a CRC makes an FPDU certain.
func TestMidway(t *testing.T) {
	_, err := all(t, newTape().says(0, sends(3, 100, false)[60:]).file.Bytes(), dump.Config{})
	require.ErrorIs(t, err, dump.ErrForeign, "one segment of TCP, which begins within an FPDU")
	tp := newTape().says(0, sends(1, 100, false)[60:])
	for range 2 {
		tp.says(0, sends(1, 100, false))
	}
	got := strings.Join(lines(t, tp.file.Bytes(), dump.Config{}), "\n")
	require.Contains(t, got, "octets not decoded, up to the next FPDU that is certain")
	require.Equal(t, 2, strings.Count(got, "Send QN 0 MSN 1 MO 0, 100 octets, last, CRC valid"))
}

// TestWhatOnlyLooksLikeAnFPDU: a TCP segment begins with payload that looks like a header, but the CRC is not valid. It
// is not decoded.
func TestWhatOnlyLooksLikeAnFPDU(t *testing.T) {
	inside := fpdu(nil, send(7, make([]byte, 100)), false)
	inside[len(inside)-1]++
	for name, tp := range map[string]*tape{
		"midway":       newTape(),
		"behind a gap": newTape().opens(frame("Req", withCRC), frame("Rep", withCRC)).drops(0, 10),
	} {
		tp.says(0, inside)
		tp.says(0, fpdu(nil, send(8, make([]byte, 100)), false)).says(0, fpdu(nil, send(9, make([]byte, 100)), false)).says(1, sends(1, 1, false))
		got := strings.Join(lines(t, tp.file.Bytes(), dump.Config{}), "\n")
		require.NotContains(t, got, "MSN 7", name)
		require.Contains(t, got, "Send QN 0 MSN 8 MO 0, 100 octets, last, CRC valid", name)
		require.Contains(t, got, "Send QN 0 MSN 9 MO 0, 100 octets, last, CRC valid", name)
	}
}

// TestForeignStreams: each connection gives one line.
func TestForeignStreams(t *testing.T) {
	for head, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n": `no iWARP: the stream begins with "GET / HTTP/1.1\r\n"`,
		"\x16\x03\x01\x02\x00":   "TLS, which hides what is in it",
	} {
		for _, says := range [][2]string{{head, head}, {head, ""}, {"", head}} { // one side may send nothing
			tp, packets := newTape().opens([]byte(says[0]), []byte(says[1])), 2
			for from, said := range says {
				tp.segment(from, tp.next[from], pcap.FIN|pcap.ACK, nil)
				packets += 1 + min(len(said), 1)
			}
			records, err := all(t, tp.file.Bytes(), dump.Config{})
			require.ErrorIs(t, err, dump.ErrForeign)
			require.ErrorContains(t, err, fmt.Sprintf("packet %d at octet ", packets))
			require.Len(t, records, 2)
			require.Contains(t, records[1].Errors[0], want)
		}
	}
}

// TestCutCaptures: a capture cut anywhere gives an error that names the packet and its octet, or a shorter conversation.
func TestCutCaptures(t *testing.T) {
	whole := newTape().opens(frame("Req", plain), frame("Rep", plain)).says(0, sends(1, 10, false)).file.Bytes()
	for n := range len(whole) {
		_, err := all(t, whole[:n], dump.Config{})
		if err != nil {
			require.Regexp(t, `octet \d+`, err.Error())
		}
	}
	_, err := all(t, []byte("\x7fELF and what follows it in a program"), dump.Config{})
	require.ErrorContains(t, err, "not a capture file: it begins with 7f 45 4c 46 at octet 0")
	foreign := bytes.Clone(whole)
	foreign[20] = 147
	_, err = all(t, foreign, dump.Config{})
	require.ErrorContains(t, err, "packet 1 at octet 24: link type 147")
}

// TestDamagedCaptures: octets of packets, and of their headers, are changed at random. Each octet is decoded at most
// once.
func TestDamagedCaptures(t *testing.T) {
	tapes := [][]byte{markersTape(), badCRCTape(), gapTape(), hostileTape(), privateTape(), extensionsTape(), sctpTape(false), sctpTape(true), rpcTape(), rsocketTape()}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		damaged := bytes.Clone(tapes[r.IntN(len(tapes))])
		for range 1 + r.IntN(8) {
			damaged[24+r.IntN(len(damaged)-24)] = byte(r.Uint32())
		}
		records, _ := all(t, damaged, dump.Config{Protocols: map[uint16]string{7471: []string{"nvme", "rma", "rpcrdma", "rsocket"}[r.IntN(4)]}})
		octets := 0
		for i := range records {
			if records[i].DDP != nil {
				octets += records[i].DDP.Length
			}
		}
		require.LessOrEqual(t, octets, len(damaged), "seed %d", seed)
	}
}

// TestPortsAndSequenceNumbersAgain: a connection that begins like one that has ended is a new connection. In a trace,
// all connections begin with 0, and those without IP addresses have the same two addresses.
func TestPortsAndSequenceNumbersAgain(t *testing.T) {
	for name, end := range map[string]pcap.Flags{"closed": pcap.FIN, "reset": pcap.RST} {
		tp := newTape()
		first := tp.next
		for range 2 {
			tp.next = first
			tp.opens(frame("Req", withCRC), frame("Rep", withCRC)).says(0, sends(1, 9, false))
			for from := range 2 {
				tp.segment(from, tp.next[from], end|pcap.ACK, nil)
			}
		}
		got := strings.Join(lines(t, tp.file.Bytes(), dump.Config{}), "\n")
		require.Contains(t, got, "#2 > MPA Request", "%s:\n%s", name, got)
		require.Contains(t, got, "#2 > Send QN 0 MSN 1", "%s:\n%s", name, got)
		require.NotContains(t, got, " ! ", name)
	}
}

// TestOtherInterfacesArePassedOver: pcapng has packets of several interfaces, and the link type of one may be unknown.
func TestOtherInterfacesArePassedOver(t *testing.T) {
	le := binary.LittleEndian
	block := func(file []byte, kind uint32, body []byte) []byte {
		body = append(body, make([]byte, -len(body)&3)...)
		file = append(le.AppendUint32(le.AppendUint32(file, kind), uint32(len(body)+12)), body...)
		return le.AppendUint32(file, uint32(len(body)+12))
	}
	packet := func(file []byte, of uint32, data []byte) []byte {
		head := append(le.AppendUint32(nil, of), make([]byte, 8)...)
		head = le.AppendUint32(le.AppendUint32(head, uint32(len(data))), uint32(len(data)))
		return block(file, 6, append(head, data...))
	}
	const usb, raw = 220, 101
	file := block(nil, 0x0a0d0d0a, append(le.AppendUint32(nil, 0x1a2b3c4d), make([]byte, 12)...))
	file = block(file, 1, []byte{usb, 0, 0, 0, 0, 0, 0, 0})
	file = block(file, 1, []byte{raw, 0, 0, 0, 0, 0, 0, 0})
	alone := packet(file, 0, []byte("keys that are pressed"))
	_, err := all(t, alone, dump.Config{})
	require.ErrorContains(t, err, "packet 1 at octet 68: link type 220, of which nothing is known")

	whole := packet(alone, 0, []byte("and more"))
	tape, err := pcap.NewReader(&newTape().opens(frame("Req", withCRC), frame("Rep", withCRC)).says(0, sends(1, 9, false)).file)
	require.NoError(t, err)
	for p, err := tape.Next(); err == nil; p, err = tape.Next() {
		whole = packet(whole, 1, p.Data)
	}
	got := lines(t, whole, dump.Config{})
	require.Equal(t, "     1   0.000000 error ! link type 220, of which nothing is known: its packets are passed over", got[0])
	require.Len(t, got, 1+3+1, "once")
	require.Contains(t, got[4], "Send QN 0 MSN 1")
}

// snapped returns a capture whose packets are cut to at most so many octets.
func snapped(t *testing.T, capture []byte, most int) []byte {
	le := binary.LittleEndian
	short := bytes.Clone(capture[:24])
	for at := 24; at < len(capture); {
		n := int(le.Uint32(capture[at+8:]))
		short = append(short, capture[at:at+8]...)
		short = le.AppendUint32(le.AppendUint32(short, uint32(min(n, most))), uint32(n))
		short = append(short, capture[at+16:at+16+min(n, most)]...)
		at += 16 + n
	}
	return short
}

// TestPacketsThatAreCut: missing octets of the last segment are reported like any others, and not as the sender's fault.
func TestPacketsThatAreCut(t *testing.T) {
	for name, flags := range map[string]pcap.Flags{"open": pcap.ACK, "closed": pcap.FIN | pcap.ACK} {
		tp := newTape().opens(frame("Req", withCRC), frame("Rep", withCRC))
		sent := sends(1, 100, false)
		tp.segment(0, tp.next[0], flags, sent)
		got := strings.Join(lines(t, snapped(t, tp.file.Bytes(), 40+20+60), dump.Config{}), "\n")
		require.Contains(t, got, fmt.Sprintf("%d octets missing in the capture", len(sent)-60), "%s:\n%s", name, got)
		require.NotContains(t, got, " ! ", name)
		require.Equal(t, flags&pcap.FIN != 0, strings.Contains(got, "FIN"), "%s:\n%s", name, got)
	}
}

// TestFINBehindAGap: the FIN is shown at the end of the capture, when the gap is certain.
func TestFINBehindAGap(t *testing.T) {
	tp := newTape().opens(frame("Req", withCRC), frame("Rep", withCRC)).drops(0, 10)
	tp.segment(0, tp.next[0], pcap.FIN|pcap.ACK, nil)
	got := lines(t, tp.file.Bytes(), dump.Config{})
	require.Contains(t, got[3], "10 octets missing in the capture")
	require.Contains(t, got[4], "#1 > FIN")
}

// TestFragmentsAreTold: an IPv6 fragment is reported like an IPv4 fragment.
func TestFragmentsAreTold(t *testing.T) {
	s := pcap.Segment{Src: client, Dst: server, Payload: []byte("octets")}
	whole := s.Append(nil)
	part := append(bytes.Clone(whole[:40]), whole[6], 0, 0, 1, 0, 0, 0, 9) // more follow
	part = append(part, whole[40:]...)
	part[5] += 8
	part[6] = 44
	records := dump.New(dump.Config{}).Packet(pcap.Packet{Link: pcap.LinkRaw, Data: part})
	require.Len(t, records, 1)
	require.Contains(t, records[0].Errors[0], "a fragment of an IP packet")
}
