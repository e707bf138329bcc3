package wiretest

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/stag"
)

// A kind is a kind of segment as scripts name it, with its default first octets.
type kind struct {
	name       string
	ddp, rdmap byte
	qn         uint64
}

var kinds = []kind{
	{"write", 0xc1, 0x40, 0},
	{"read-request", 0x41, 0x41, 1},
	{"read-response", 0xc1, 0x42, 0},
	{"send", 0x41, 0x43, 0},
	{"send-invalidate", 0x41, 0x44, 0},
	{"send-solicited", 0x41, 0x45, 0},
	{"send-invalidate-solicited", 0x41, 0x46, 0},
	{"terminate", 0x41, 0x47, 2},
	{"immediate", 0x41, 0x48, 0},
	{"immediate-solicited", 0x41, 0x49, 0},
	{"tagged", 0xc1, 0x40, 0},
	{"untagged", 0x41, 0x43, 0},
}

const tagged = 0x80 // the T bit

// A parser reads one segment.
type parser struct {
	fields map[string]string
	used   map[string]bool
	stags  func(name string) (stag.STag, bool)
	err    error
}

// parseSegment reads a segment in the form that Names.Parse describes.
func parseSegment(text string, stags func(name string) (stag.STag, bool)) ([]byte, error) {
	head, payload, err := cutPayload(text)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(head)
	if len(words) == 0 {
		return nil, fmt.Errorf("%q is no segment", text)
	}
	p := &parser{fields: make(map[string]string), used: make(map[string]bool), stags: stags}
	for _, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			return nil, fmt.Errorf("%q: %q is no field", text, w)
		}
		p.fields[k] = v
	}
	b := p.segment(words[0], payload)
	for k := range p.fields {
		if !p.used[k] {
			p.fail("a %s has no field %q", words[0], k)
		}
	}
	if p.err != nil {
		return nil, fmt.Errorf("%q: %w", text, p.err)
	}
	return b, nil
}

// cutPayload takes the payload from the end of a segment's text.
func cutPayload(text string) (head, payload string, err error) {
	at := strings.IndexByte(text, '"')
	if at < 0 {
		return text, "", nil
	}
	quoted, err := strconv.QuotedPrefix(text[at:])
	if err != nil {
		return "", "", fmt.Errorf("%q: %w", text, err)
	}
	payload, _ = strconv.Unquote(quoted)
	if times, ok := strings.CutPrefix(strings.TrimSpace(text[at+len(quoted):]), "*"); ok {
		n, err := strconv.Atoi(times)
		if err != nil {
			return "", "", fmt.Errorf("%q: %w", text, err)
		}
		payload = strings.Repeat(payload, n)
	}
	return text[:at], payload, nil
}

func (p *parser) segment(name, payload string) []byte {
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		b := p.header(k)
		if name == "read-request" {
			b = binary.BigEndian.AppendUint32(b, p.stag("sink"))
			b = binary.BigEndian.AppendUint64(b, p.number("sink-to", 0))
			b = binary.BigEndian.AppendUint32(b, uint32(p.number("size", 0)))
			b = binary.BigEndian.AppendUint32(b, p.stag("src"))
			b = binary.BigEndian.AppendUint64(b, p.number("src-to", 0))
		}
		b = append(b, payload...)
		first := p.number("first", uint64(len(b)))
		return b[:min(first, uint64(len(b)))]
	}
	p.fail("no kind of segment is called %q", name)
	return nil
}

func (p *parser) header(k kind) []byte {
	ddp, rdmap := byte(p.number("ddp", uint64(k.ddp))), byte(p.number("rdmap", uint64(k.rdmap)))
	if ddp&tagged != 0 {
		return Tagged(ddp, rdmap, stag.STag(p.stag("stag")), p.number("to", 0), "")
	}
	word := uint32(p.number("word", 0))
	if _, ok := p.fields["stag"]; ok {
		word = p.stag("stag")
	}
	return Untagged(ddp, rdmap, word, uint32(p.number("qn", k.qn)), uint32(p.number("msn", 1)), uint32(p.number("mo", 0)), "")
}

func (p *parser) number(field string, otherwise uint64) uint64 {
	p.used[field] = true
	text, ok := p.fields[field]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		p.fail("%s: %w", field, err)
	}
	return n
}

func (p *parser) stag(field string) uint32 {
	p.used[field] = true
	if st, ok := p.stags(p.fields[field]); ok {
		return uint32(st)
	}
	return uint32(p.number(field, 0))
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// formatSegment writes a segment in the form that parseSegment reads. For a Terminate it writes
// layer, type and code, and the parts of the segment in error that it contains.
func formatSegment(b []byte, stags func(st stag.STag) string) string {
	f := formatter{stags: stags}
	switch {
	case len(b) >= 14 && b[0]&tagged != 0:
		f.tagged(b)
	case len(b) >= 18 && b[0]&tagged == 0:
		f.untagged(b)
	default:
		return fmt.Sprintf("% x", b)
	}
	return f.String()
}

type formatter struct {
	strings.Builder
	stags func(st stag.STag) string
}

// kind writes the kind of the segment, and its first octets if they are not the defaults.
func (f *formatter) kind(b []byte) kind {
	k := kind{name: "untagged", ddp: 0x41, rdmap: 0x43}
	if b[0]&tagged != 0 {
		k = kind{name: "tagged", ddp: 0xc1, rdmap: 0x40}
	}
	for _, x := range kinds {
		if x.rdmap == b[1] && x.ddp&tagged == b[0]&tagged && !strings.HasSuffix(x.name, "tagged") {
			k = x
		}
	}
	f.WriteString(k.name)
	if b[0] != k.ddp {
		fmt.Fprintf(f, " ddp=%#02x", b[0])
	}
	if b[1] != k.rdmap {
		fmt.Fprintf(f, " rdmap=%#02x", b[1])
	}
	return k
}

func (f *formatter) tagged(b []byte) {
	f.kind(b)
	fmt.Fprintf(f, " stag=%s to=%#x", f.stag(b[2:]), binary.BigEndian.Uint64(b[6:]))
	f.payload(b[14:])
}

func (f *formatter) untagged(b []byte) {
	k := f.kind(b)
	word, qn := binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint32(b[6:])
	msn, mo := binary.BigEndian.Uint32(b[10:]), binary.BigEndian.Uint32(b[14:])
	if word != 0 {
		fmt.Fprintf(f, " stag=%s", f.stag(b[2:]))
	}
	if uint64(qn) != k.qn {
		fmt.Fprintf(f, " qn=%d", qn)
	}
	if k.name == "terminate" && len(b) >= 22 && msn == 1 && mo == 0 {
		f.terminate(b[18:])
		return
	}
	fmt.Fprintf(f, " msn=%d", msn)
	if mo != 0 {
		fmt.Fprintf(f, " mo=%d", mo)
	}
	if rest := b[18:]; k.name == "read-request" && len(rest) >= 28 {
		fmt.Fprintf(f, " sink=%s sink-to=%#x size=%d src=%s src-to=%#x", f.stag(rest), binary.BigEndian.Uint64(rest[4:]),
			binary.BigEndian.Uint32(rest[12:]), f.stag(rest[16:]), binary.BigEndian.Uint64(rest[20:]))
		b = b[28:]
	}
	f.payload(b[18:])
}

// terminate writes the contents of a Terminate (RFC 5040 section 4.8). It writes octets only if they
// are not as they should be.
func (f *formatter) terminate(h []byte) {
	fmt.Fprintf(f, " %#04x", binary.BigEndian.Uint16(h))
	if string(h[2:]) == "\x00\x00" {
		return
	}
	if len(h) > 6 {
		header := 18
		if h[6]&tagged != 0 {
			header = 14
		}
		switch bits, rest := binary.BigEndian.Uint16(h[2:]), len(h)-6; {
		case bits == 0xc000 && rest == header, bits == 0xe000 && rest == header+28:
			fmt.Fprintf(f, " of %d octets: %s", binary.BigEndian.Uint16(h[4:]), formatSegment(h[6:], f.stags))
			return
		}
	}
	f.payload(h[2:])
}

func (f *formatter) stag(b []byte) string { return f.stags(stag.STag(binary.BigEndian.Uint32(b))) }

// payload writes octets; a run of a single value is abbreviated.
func (f *formatter) payload(b []byte) {
	switch {
	case len(b) == 0:
	case len(b) > 4 && strings.Count(string(b), string(b[:1])) == len(b):
		fmt.Fprintf(f, " %q*%d", b[:1], len(b))
	default:
		fmt.Fprintf(f, " %q", b)
	}
}
