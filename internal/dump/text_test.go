package dump_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/dump"
)

// TestLineWithoutATime: a pcapng block may have no time, also among blocks that have one.
func TestLineWithoutATime(t *testing.T) {
	var p dump.Printer
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, "     1          - end"},
		{time.Unix(5, 0), "     1   0.000000 end"},
		{time.Time{}, "     1          - end"},
		{time.Unix(6, 0), "     1   1.000000 end"},
	} {
		require.Equal(t, c.want, p.Line(&dump.Record{Packet: 1, Time: c.at, Kind: dump.KindEnd, Text: "end"}))
	}
}
