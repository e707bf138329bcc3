package matrix

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/interop/pace"
	"github.com/goiwarp/iwarp/interop/wire"
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
			isKnob := func(d string) bool { return strings.HasPrefix(d, name+"=") }
			require.True(t, slices.ContainsFunc(knobDefaults, isKnob), "%s: %s is no knob, or would stay turned", c.Name, k)
		}
	}
}

// TestCasesSayWhatOurEndSends: if our end must object, the case says how. If our end begins a connection, the capture is
// searched for a ready-to-receive message.
func TestCasesSayWhatOurEndSends(t *testing.T) {
	kinds, objections := map[wire.Opcode]int{}, 0
	for _, c := range Cases {
		e := c.Expected()
		require.Equal(t, c.Role == Initiator && !c.NoRTR, e.RTR != nil, c.Name)
		if e.RTR != nil {
			kinds[*e.RTR]++
		}
		if strings.HasPrefix(c.Name, "terminate/from-us/") {
			require.NotNil(t, e.Terminate, c.Name)
			objections++
		}
		require.False(t, e.AnyTerminate && e.Terminate != nil, c.Name)
	}
	require.Equal(t, 12, objections)
	require.Equal(t, 1, kinds[wire.ReadRequest])
	require.Greater(t, kinds[wire.Write], 30)
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

func TestLimitsAreStretched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &T{Ctx: t.Context(), pace: pace.New(func() float64 { return 3 })}
		began := time.Now()
		require.False(t, c.endsWithin(make(chan struct{}), soon))
		require.Equal(t, 3*soon, time.Since(began))
		over := make(chan struct{})
		close(over)
		require.True(t, c.endsWithin(over, soon))
		began = time.Now()
		require.True(t, c.within(soon, func() bool { return time.Since(began) > 2*soon }))
		require.False(t, c.within(soon, func() bool { return false }))
	})
}
