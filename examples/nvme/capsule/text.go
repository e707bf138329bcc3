package capsule

import (
	"bytes"
	"strings"
)

// putSpaces writes ASCII to a field, and spaces after it. It truncates a text that is too long.
func putSpaces(b []byte, s string) {
	for i := copy(b, s); i < len(b); i++ {
		b[i] = ' '
	}
}

// padded returns the text of a field, without the spaces and NULs that fill it.
func padded(b []byte) string { return string(bytes.TrimRight(b, " \x00")) }

// checkText checks that a text fits a field, and is printable ASCII that does not end with a space.
func checkText(what, s string, n int) error {
	if len(s) > n {
		return malformed("%s %q is longer than %d octets", what, s, n)
	}
	bad := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.ContainsFunc(s, bad) || strings.HasSuffix(s, " ") {
		return malformed("%s %q is not printable ASCII without spaces at its end", what, s)
	}
	return nil
}
