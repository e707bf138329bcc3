package solicit

import (
	"cmp"
	"fmt"
	"time"
)

// MinCharge is the least number of octets that an operation takes of the window, so that tiny
// operations are not free.
const MinCharge = 64

// Dispatch timeouts for operations that should fail early if the window is the bottleneck, so that
// the application can try another peer.
const (
	DispatchLatency = 20 * time.Millisecond
	DispatchBulk    = 200 * time.Millisecond
)

// Defaults and limits of a Config.
const (
	quantumUnit = 64 << 10 // octets of a turn for each unit of weight

	defaultMin      = 16 * 64 << 10
	defaultMax      = 64 << 20
	defaultStart    = 1 << 20
	defaultMaxQueue = 4096

	mostOctets   = 1 << 36 // of Fixed and Max
	mostWeight   = 1 << 10
	mostDispatch = 10 * time.Second
	mostQueue    = 1 << 20
)

var defaultWeight = [classes]int{Latency: 4, Bulk: 1}

// A Config configures a Window. The zero Config means a window of automatic size without dispatch
// timeouts. Arrays have one element for each Class.
type Config struct {
	// Fixed is the fixed size of the window, in octets: 64 to 2^36. 0: the size is automatic. If
	// Fixed is set, Min, Max and Start must be 0.
	Fixed int64

	// Min and Max are the bounds of the automatic size, in octets, and Start is the size before
	// the first measurement: 64 to 2^36. An operation may be as large as Max. The defaults are
	// 1 MiB, 64 MiB and 1 MiB, or the nearest values within the bounds that are set.
	Min, Max, Start int64

	// Weight is the share of each class in the octets that are granted while both classes wait: 1
	// to 1024. The defaults are 4 for Latency and 1 for Bulk.
	Weight [2]int

	// Strict grants Bulk operations only while no Latency operation waits. Weight is then unused.
	Strict bool

	// Dispatch is the longest time that operations wait for their grant: up to 10 s. 0: no limit.
	// DispatchLatency and DispatchBulk are good values for operations that may fail.
	Dispatch [2]time.Duration

	// MaxQueue is how many operations of each class may wait: 1 to 2^20. The default is 4096.
	MaxQueue int
}

// Check returns an error that names the first field with a value that is not allowed.
func (c Config) Check() error {
	if c.Fixed != 0 && (c.Min != 0 || c.Max != 0 || c.Start != 0) {
		return fmt.Errorf("solicit: Config.Fixed is %d, and Min, Max or Start is set too", c.Fixed)
	}
	for _, f := range []struct {
		name       string
		v          int64
		low, high  int64
		isDuration bool
	}{
		{name: "Fixed", v: c.Fixed, low: MinCharge, high: mostOctets},
		{name: "Min", v: c.Min, low: MinCharge, high: mostOctets},
		{name: "Max", v: c.Max, low: MinCharge, high: mostOctets},
		{name: "Start", v: c.Start, low: MinCharge, high: mostOctets},
		{name: "Weight[Latency]", v: int64(c.Weight[Latency]), low: 1, high: mostWeight},
		{name: "Weight[Bulk]", v: int64(c.Weight[Bulk]), low: 1, high: mostWeight},
		{name: "Dispatch[Latency]", v: int64(c.Dispatch[Latency]), low: 1, high: int64(mostDispatch), isDuration: true},
		{name: "Dispatch[Bulk]", v: int64(c.Dispatch[Bulk]), low: 1, high: int64(mostDispatch), isDuration: true},
		{name: "MaxQueue", v: int64(c.MaxQueue), low: 1, high: mostQueue},
	} {
		switch {
		case f.v == 0, f.low <= f.v && f.v <= f.high:
		case f.isDuration:
			return fmt.Errorf("solicit: Config.%s is %v, not 0 to %v", f.name, time.Duration(f.v), time.Duration(f.high))
		default:
			return fmt.Errorf("solicit: Config.%s is %d, not %d to %d, or 0 for the default", f.name, f.v, f.low, f.high)
		}
	}
	if d := c.withDefaults(); d.Min > d.Start || d.Start > d.Max {
		return fmt.Errorf("solicit: Config.Min, Start and Max are not in order: %d, %d, %d", d.Min, d.Start, d.Max)
	}
	return nil
}

// withDefaults sets the fields that are 0. A fixed size sets Min, Max and Start.
func (c Config) withDefaults() Config {
	if c.Fixed != 0 {
		c.Min, c.Max, c.Start = c.Fixed, c.Fixed, c.Fixed
	}
	c.Max = cmp.Or(c.Max, max(defaultMax, c.Min, c.Start))
	if c.Min == 0 {
		c.Min = min(defaultMin, c.Max)
		if c.Start != 0 {
			c.Min = min(c.Min, c.Start)
		}
	}
	c.Start = cmp.Or(c.Start, min(max(defaultStart, c.Min), c.Max))
	for i, w := range c.Weight {
		c.Weight[i] = cmp.Or(w, defaultWeight[i])
	}
	c.MaxQueue = cmp.Or(c.MaxQueue, defaultMaxQueue)
	return c
}
