package connectperf

import (
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// How connections are set up.
const (
	howRaw    = "raw"    // plain TCP that exchanges 24 octets, as many in flight as the window
	howSerial = "serial" // one after the other
	howEach   = "each"   // a goroutine for each
	howMany   = "many"   // cm.DialMany
	howPaced  = "paced"  // one at a time at a fixed rate, beside attacks
)

// A point is one thing to measure.
type point struct {
	N      int           `json:"n"`
	Delay  time.Duration `json:"delay"`
	How    string        `json:"how"`
	Auth   string        `json:"auth"`
	Window int           `json:"window"` // how many are in flight
	// Bad is the number of forged and replayed Requests for each set-up, with howPaced.
	Bad int `json:"bad,omitempty"`
}

// raw returns the baseline of p.
func (p point) raw() point {
	p.How, p.Auth = howRaw, authmode.Plain
	return p
}

func (p point) String() string {
	s := fmt.Sprintf("n=%d delay=%v %s", p.N, p.Delay, p.How)
	if p.How == howMany || p.How == howRaw {
		s += fmt.Sprint("(", p.Window, ")")
	}
	s += " " + p.Auth
	if p.Bad > 0 {
		s += fmt.Sprintf(" beside %d times as many attacks", p.Bad)
	}
	return s
}

// many returns a point for cm.DialMany with its best window.
func many(n int, delay time.Duration, auth string) point {
	return point{N: n, Delay: delay, How: howMany, Auth: auth, Window: 256}
}

// A grid is many points.
type grid struct {
	n, window numbers
	delay     times
	how, auth words
}

// spareFiles is how many descriptors a process needs besides those of its connections: each
// connection that is set up has two for a moment.
const spareFiles = 64

func (g *grid) check(files uint64) error {
	for _, h := range g.how {
		if !slices.Contains([]string{howRaw, howSerial, howEach, howMany}, h) {
			return cli.Usagef("--how %q: serial, each and many are known", h)
		}
	}
	for _, a := range g.auth {
		if !slices.Contains(authmode.All, a) {
			return cli.Usagef("--auth %q: %v are known", a, authmode.All)
		}
	}
	if slices.Min(g.n) < 1 || slices.Min(g.window) < 1 || slices.Min(g.delay) < 0 {
		return cli.Usagef("--conns and --window are 1 at least, --delay 0")
	}
	most := slices.Max(g.n)
	if need := uint64(most + spareFiles + min(most, slices.Max(g.window))); need > files {
		return fmt.Errorf("%d connections need %d file descriptors, and the process may have %d: raise the limit, by ulimit -n %d for example", most, need, files, need)
	}
	return nil
}

// points returns the points with one delay.
func (g *grid) points(delay time.Duration) (all []point) {
	for _, n := range g.n {
		for _, h := range g.how {
			for _, a := range g.auth {
				for _, w := range g.windows(h, n) {
					all = append(all, point{N: n, Delay: delay, How: h, Auth: a, Window: w})
				}
			}
		}
	}
	return all
}

// windows returns the numbers of connections that may be in flight when they are set up in that way.
func (g *grid) windows(how string, n int) []int {
	switch how {
	case howSerial:
		return []int{1}
	case howEach:
		return []int{n}
	}
	return g.window
}
