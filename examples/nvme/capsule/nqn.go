package capsule

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxNQN is the length of the longest NQN, in octets.
	MaxNQN = 223
	// DiscoveryNQN is the name of the discovery subsystem of every target (Base 2.0, 4.5).
	DiscoveryNQN = "nqn.2014-08.org.nvmexpress.discovery"

	nqnSize = 256
)

// CheckNQN checks a name: 1 to 223 octets of UTF-8, without control characters. Its error quotes the name, which may
// come from a peer.
func CheckNQN(nqn string) error {
	switch {
	case nqn == "":
		return malformed("empty NQN")
	case len(nqn) > MaxNQN:
		return malformed("NQN %.64q... is longer than %d octets", nqn, MaxNQN)
	case !utf8.ValidString(nqn):
		return malformed("NQN %q is not UTF-8", nqn)
	}
	for _, r := range nqn {
		if unicode.IsControl(r) {
			return malformed("NQN %q has a control character", nqn)
		}
	}
	return nil
}

// untilNUL returns the string in a field, up to the first NUL or the end of the field.
func untilNUL(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// putNUL writes a string to a field, and zeros after it. It truncates a string that is too long.
func putNUL(b []byte, s string) { clear(b[copy(b, s):]) }
