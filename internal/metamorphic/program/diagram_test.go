package program

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDraw(t *testing.T) {
	a, b := End{0, 0}, End{0, 1}
	drawn := Draw(1, []Entry{
		{Line: -1, End: a, To: true, Text: "first"},
		{Line: 0, End: b, Text: "register"},
		{Line: 1, End: b, To: true, Text: "Send"},
		{Line: 1, End: a, Text: "receive\n" + strings.Repeat("x", 100)},
		{Line: 2, End: b, Text: "closed"},
	})
	require.Equal(t, strings.TrimPrefix(`
     0a                                                          0b
     first ----------------------------------------------------> |
  0  |                                                           register
  1  <---------------------------------------------------------- Send
     receive xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...   |
  2  |                                                           closed
`, "\n"), drawn)
	two := strings.Split(Draw(2, []Entry{{End: End{1, 0}, To: true, Text: "Send"}}), "\n")
	require.Equal(t, []string{"0a", "0b", "1a", "1b"}, strings.Fields(two[0]), "each end has a column")
	require.Equal(t, strings.Index(two[0], "1a"), strings.Index(two[1], "Send"))
	require.Equal(t, strings.Index(two[0], "1b"), strings.LastIndex(two[1], "|"))
}

// TestDiagramOfAFailure: it ends with what has failed.
func TestDiagramOfAFailure(t *testing.T) {
	p, err := Parse("0b register len=64\n0a write len=64\n0b compare\n")
	require.NoError(t, err)
	plan := New(p)
	for _, s := range plan.Steps {
		for mem, b := range s.Want {
			if s.Line == 2 && mem.Name == "0b r0.1" {
				b[9]++
			}
		}
	}
	x, err := new(Runner).execute(plan, Config{Network: Pipe})
	require.ErrorContains(t, err, "line 2 (0b compare): 0b r0.1: 1 octets of [9, 9] differ")
	drawn := Draw(1, x.trace)
	require.Contains(t, drawn, "  1  #1 RDMA Write r0 at 0 len 64 ----")
	require.Contains(t, drawn, "     FAILS: 0b r0.1: 1 octets of [9, 9] differ")
}
