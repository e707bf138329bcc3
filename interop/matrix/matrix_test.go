package matrix

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCasesAreNamedOnceAndByRole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases {
		require.False(t, seen[c.Name], "%s is there twice", c.Name)
		seen[c.Name] = true
		require.True(t, strings.HasSuffix(c.Name, "/"+string(c.Role)), "%s ends with its role, %s", c.Name, c.Role)
		require.NotNil(t, c.Run, c.Name)
		for _, k := range c.Knobs {
			name, _, _ := strings.Cut(k, "=")
			require.Condition(t, func() bool {
				for _, d := range knobDefaults {
					if strings.HasPrefix(d, name+"=") {
						return true
					}
				}
				return false
			}, "%s: %s is no knob, or would stay turned", c.Name, k)
		}
	}
}

func TestBrief(t *testing.T) {
	var got testingT
	require.Equal(&got, 1, 2, "number of %s", "ends")
	require.Equal(t, "Not equal:; expected: 1; actual  : 2; number of ends", brief(string(got)), "testify in one line")
	require.Equal(t, "plain", brief("plain"))
}

type testingT string

func (t *testingT) Errorf(format string, args ...any) { *t = testingT(args[0].(string)) }
func (t *testingT) FailNow()                          {}

func TestPattern(t *testing.T) {
	b := make([]byte, 70000)
	fillPattern(b, 3)
	require.Equal(t, []byte{0xf5, 0x02, 0x0f}, b[:3], "as peer.c has it")
	require.Equal(t, byte((3*167+257*13+7)&0xff), b[257])
	require.Equal(t, byte((3*167+65536*13+256*7+1)&0xff), b[65536])
}
