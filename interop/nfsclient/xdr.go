package nfsclient

import (
	"encoding/binary"
	"fmt"
)

// A message is an RPC message that is being built.
type message []byte

func (m *message) word(words ...uint32) {
	for _, w := range words {
		*m = binary.BigEndian.AppendUint32(*m, w)
	}
}

func (m *message) long(v uint64) { *m = binary.BigEndian.AppendUint64(*m, v) }

func (m *message) opaque(b []byte) {
	m.word(uint32(len(b)))
	*m = append(append(*m, b...), make([]byte, -len(b)&3)...)
}

// attributes are the sattr3 of a new file or directory.
func (m *message) attributes(mode uint32) { m.word(1, mode, 0, 0, 0, 0, 0) }

// A reader parses a reply, until something is missing.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)) {
		r.err = fmt.Errorf("nfsclient: a reply that ends %d octets too early", n-len(r.b))
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) word() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) long() uint64 { return uint64(r.word())<<32 | uint64(r.word()) }

func (r *reader) opaque() []byte {
	n := int(r.word())
	b := r.take(n)
	r.take(-n & 3)
	return b
}

const attributesLen = 84 // of a fattr3

// optional skips an optional field.
func (r *reader) optional(n int) {
	if r.word() != 0 {
		r.take(n)
	}
}

// changes skips a wcc_data.
func (r *reader) changes() {
	r.optional(24)
	r.optional(attributesLen)
}
