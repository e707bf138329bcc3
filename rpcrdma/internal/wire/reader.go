package wire

import (
	"encoding/binary"
	"fmt"
)

// A reader reads words, until there is an error.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) need(n int) bool {
	if r.err == nil && len(r.b)-r.at < n {
		r.err = fmt.Errorf("%w: it ends after %d octets", ErrMalformed, len(r.b))
	}
	return r.err == nil
}

func (r *reader) word() uint32 {
	if !r.need(4) {
		return 0
	}
	r.at += 4
	return binary.BigEndian.Uint32(r.b[r.at-4:])
}

// another reads the word that says whether a list has another element.
func (r *reader) another(list string) bool {
	w := r.word()
	if r.err == nil && w > 1 {
		r.err = fmt.Errorf("%w: %s goes on with %#x", ErrMalformed, list, w)
	}
	return r.err == nil && w == 1
}

// segment reads a segment, and checks that it does not wrap.
func (r *reader) segment() Segment {
	if !r.need(segmentLen) {
		return Segment{}
	}
	b := r.b[r.at:]
	r.at += segmentLen
	s := Segment{Handle: binary.BigEndian.Uint32(b), Length: binary.BigEndian.Uint32(b[4:]), Offset: binary.BigEndian.Uint64(b[8:])}
	if s.Wraps() {
		r.err = fmt.Errorf("%w: a segment of %d octets at offset %#x", ErrMalformed, s.Length, s.Offset)
	}
	return s
}

func appendWords(b []byte, words ...uint32) []byte {
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}
