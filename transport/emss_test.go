package transport

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sizes keeps how long the writes were.
type sizes struct {
	net.Conn
	writes []int
}

func (s *sizes) Write(p []byte) (int, error) {
	s.writes = append(s.writes, len(p))
	return io.Discard.Write(p)
}

func TestPlainStreamWritesWholeSegments(t *testing.T) {
	for emss, want := range map[int][]int{
		0:             {stageSize, stageSize, stageSize, 200_000 - 3*stageSize},
		1448:          {65160, 65160, 65160, 4520},
		40_000:        {40_000, 40_000, 40_000, 40_000, 40_000},
		stageSize + 1: {stageSize, stageSize, stageSize, 200_000 - 3*stageSize},
	} {
		c := &sizes{}
		s := &connStream{conn: c}
		n, err := s.gather([][]byte{make([]byte, 50_000), make([]byte, 150_000)}, stageLen(emss))
		require.NoError(t, err)
		require.Equal(t, 200_000, n)
		require.Equal(t, want, c.writes, "segments of %d octets", emss)
	}
}
