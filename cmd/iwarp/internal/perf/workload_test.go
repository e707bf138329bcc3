package perf

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

func TestSinks(t *testing.T) {
	for _, c := range []struct {
		name    string
		w       workload
		octets  int
		sources []int // of the first operations
		sinks   []int
	}{
		{"a sink each", workload{Op: opRead, Size: 10, Depth: 3}, 30, []int{0, 0, 0}, []int{0, 10, 20}},
		{"one for all", workload{Op: opRead, Size: 10, Depth: 3, Shared: true}, 10, []int{0, 0, 0}, []int{0, 0, 0}},
		{"a region of two", workload{Op: opRead, Size: 10, Depth: 3, Region: 25}, 30, []int{0, 10, 0}, []int{0, 10, 20}},
		{"those two shared", workload{Op: opRead, Size: 10, Depth: 3, Region: 25, Shared: true}, 25, []int{0, 10, 0}, []int{0, 10, 0}},
		{"a region of five", workload{Op: opRead, Size: 10, Depth: 2, Region: 55}, 55, []int{0, 10, 20, 30}, []int{0, 10, 20, 30}},
		{"not a Read", workload{Op: opWrite, Size: 10, Depth: 3}, 10, []int{0, 0, 0}, []int{0, 0, 0}},
	} {
		w := c.w.filled()
		require.NoError(t, w.check(), c.name)
		require.Equal(t, c.octets, w.sinkLen(), c.name)
		require.Equal(t, len(c.sources), w.slots(), c.name)
		for i := range w.slots() {
			require.Equal(t, c.sources[i], w.stretch(i), "%s: source of operation %d", c.name, i)
			require.Equal(t, c.sinks[i], w.sink(i), "%s: sink of operation %d", c.name, i)
		}
	}
}

func TestReadsArriveInTheirSinks(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := workload{Kind: "iwarp", Op: opRead, Size: 1000, Region: 3000, Depth: 8, Shared: shared, CRC: true}.filled()
		s, err := serveIWARP("127.0.0.1", w)
		require.NoError(t, err)
		opened, err := dialIWARP(net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port())), w)
		require.NoError(t, err)
		d := opened.(*rdmaDriver)
		got := make([]byte, w.sinkLen())
		mr, err := d.pd.RegisterMR(got, stag.LocalWrite, nil)
		require.NoError(t, err)
		sends := d.ends[0].sends
		for i := range sends {
			sends[i].Local = []iwarp.SGE{mr.Slice(sends[i].Local[0].Off, sends[i].Local[0].Len)}
		}
		_, err = d.run(20, nil)
		require.NoError(t, err)
		src, want := peer.SourceOf(w.Region), make([]byte, w.sinkLen())
		for i := range w.slots() {
			copy(want[w.sink(i):], src[w.stretch(i):][:w.Size])
		}
		require.Equal(t, want, got, "shared: %v", shared)
		require.NoError(t, d.close())
		require.NoError(t, s.close())
	}
}

// TestMemoryOfOperationsIsBounded: a client that has not been authenticated chooses their number and size.
func TestMemoryOfOperationsIsBounded(t *testing.T) {
	for _, op := range []string{opRead, opRPCSend} {
		w := workload{Kind: "iwarp", Op: op, Size: maxSize / 8, Depth: 8}.filled()
		require.NoError(t, w.check(), op)
		w.Depth++
		require.ErrorContains(t, w.check(), "9 operations of 134217728 octets", op)
	}
}
