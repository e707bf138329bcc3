package wiretest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// A Command executes a command of a script, and returns its visible result.
type Command func(t *testing.T, d *datadriven.TestData) string

// RunScript runs a conversation that is a text file: commands, each with its input, a line of
// four hyphens, and the expected result. If the result differs, the test fails with the difference.
// With the flag -rewrite, RunScript writes the actual results into the file instead.
func RunScript(t *testing.T, path string, commands map[string]Command) {
	t.Helper()
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		run, ok := commands[d.Cmd]
		if !ok {
			d.Fatalf(t, "no command is called %s", d.Cmd)
		}
		return run(t, d)
	})
}

// Names are the STags that a script knows by name.
type Names map[string]stag.STag

// Parse reads the segments of a command's input, one in each line: its kind, fields, and the
// payload as a quoted string, with a number of repetitions after it if need be.
//
//	write stag=region to=0x1000 "hello"
//	send msn=1 mo=4 "x"*100
//	read-request msn=1 sink=7 sink-to=0 size=8 src=region src-to=0x1000
//
// A missing field is 0, except MSN, which is 1, and fields that the kind implies. ddp and rdmap are
// the first two octets; first=15 truncates the segment to its first 15 octets. The value of an STag
// is a number or a name, with ^1 after it to change its bits.
func (n Names) Parse(t testing.TB, input string) (segments [][]byte) {
	t.Helper()
	for line := range strings.Lines(input) {
		b, err := parseSegment(strings.TrimSpace(line), func(name string) (stag.STag, bool) {
			return n.lookup(name)
		})
		require.NoError(t, err)
		segments = append(segments, b)
	}
	return segments
}

// lookup returns the STag of a name, which may be followed by ^ and the bits of the STag to
// change.
func (n Names) lookup(name string) (stag.STag, bool) {
	of, change, changed := strings.Cut(name, "^")
	st, ok := n[of]
	if changed && ok {
		bits, err := strconv.ParseUint(change, 0, 32)
		if err != nil {
			return 0, false
		}
		st ^= stag.STag(bits)
		n[name] = st
	}
	return st, ok
}

// Format writes a segment as Parse reads it. For a Terminate it writes layer, type and code, and
// the parts of the segment in error that it contains.
func (n Names) Format(b []byte) string {
	return formatSegment(b, func(st stag.STag) string {
		for name, named := range n {
			if named == st {
				return name
			}
		}
		if st == 0 {
			return "0"
		}
		return fmt.Sprintf("0x%08x", uint32(st))
	})
}

// EndOfStream is the line for the graceful end of the other side's half.
const EndOfStream = "end of the stream"

// Heard returns what the Peer has received so far, one line for each segment and for the end of
// the stream. It requires virtual time, and that the other side is idle.
func (p *Peer) Heard(n Names) (lines []string) {
	p.Helper()
	for {
		require.NoError(p, p.Conn.SetReadDeadline(time.Now().Add(time.Nanosecond)))
		ulpdu, err := p.next()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return lines
		case errors.Is(err, io.EOF):
			return append(lines, EndOfStream)
		case err != nil && isReset(err):
			return append(lines, "reset")
		}
		require.NoError(p, err)
		lines = append(lines, n.Format(ulpdu))
	}
}
