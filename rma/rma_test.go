package rma

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadAndWrite in all suites, over networks that are of other kinds.
func TestRMA_43_ReadAndWrite(t *testing.T) {
	for name, p := range suites() {
		for _, network := range []string{"pipe", "tcp"} {
			t.Run(name+" over "+network, func(t *testing.T) {
				p.network = network
				w := start(t, p)
				h, portal := w.opens(), w.portal(4)
				for _, n := range []int{0, 1, 16, 4096} {
					want := octets(byte(n), n)
					end := does(t, portal, Command{Op: Write, Handle: h, Off: 8192, Buf: want, Tag: 7})
					require.NoError(t, end.Err)
					require.Equal(t, n, end.N)
					require.EqualValues(t, 7, end.Tag)
					w.mem.View(func(b []byte) { require.Equal(t, want, b[8192:8192+n]) })

					got := make([]byte, n)
					end = does(t, portal, Command{Op: Read, Handle: h, Off: 8192, Buf: got})
					require.NoError(t, end.Err)
					require.Equal(t, want, got)
				}
			})
		}
	}
}
