package commit

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// TestRegionsThatAreNotDurableAreCounted, each of them, even if the first one ends the Commit.
func TestRegionsThatAreNotDurableAreCounted(t *testing.T) {
	for _, strict := range []bool{false, true} {
		c := converse(t, func(c *Config, _ *rdmap.Config) { c.Strict = strict })
		plain, _ := c.region(func(o *stag.Options) { o.Flusher = nil })
		durable, _ := c.region(nil)
		answer := func(st Status) Status {
			if strict {
				return st
			}
			return 0
		}
		c.sends("two of three", requestOf(1, ask(1, part(plain, 0, 8), part(durable, 0, 8), part(plain, 8, 8))))
		c.wantAnswer("regions", 1, 1, answer(MakeStatus(0, NotDurable)))
		require.EqualValues(t, 2, c.stats.NotDurable.Load())
		c.sends("a follow-on", requestOf(2, ask(2, part(durable, 0, 8)).then(plain.STag(), plain.BaseTO(), math.MaxUint64)))
		c.wantAnswer("to plain memory", 2, 2, answer(MakeStatus(NoRegion, NotDurable)))
		require.EqualValues(t, 3, c.stats.NotDurable.Load())
		c.sends("no octets", requestOf(3, ask(3, Region{0xdeadbeef, 0, 0}, part(durable, 0, 8))))
		c.wantAnswer("need nothing", 3, 3, 0)
		require.EqualValues(t, 3, c.stats.NotDurable.Load())
	}
}
