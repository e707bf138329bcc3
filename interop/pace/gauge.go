package pace

import (
	"sync"
	"time"
)

// Ceiling is the largest scale.
const Ceiling = 10

// fresh is how long a scale is used before it is measured again.
const fresh = 2 * time.Second

// A Gauge measures how slow the machine is.
type Gauge struct {
	measure func() float64

	mu    sync.Mutex
	scale float64
	at    time.Time // of the last measurement; zero: none
}

// New returns a Gauge with the given measurement: how many times longer something takes than on an
// idle machine.
func New(measure func() float64) *Gauge { return &Gauge{measure: measure} }

// Scale returns the factor by which limits are extended now.
func (g *Gauge) Scale() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at.IsZero() || time.Since(g.at) >= fresh {
		g.scale = min(max(g.measure(), 1), Ceiling)
		g.at = time.Now()
	}
	return g.scale
}

// Stretch returns the limit d multiplied by the current scale. It is for functions that take a duration,
// and cannot be told later that the machine has become slower.
func (g *Gauge) Stretch(d time.Duration) time.Duration {
	return time.Duration(float64(d) * g.Scale())
}
