package program

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A Config says how the connections of a program are made. A program has the same outcome with
// every Config.
type Config struct {
	Network string
	NoCRC   bool   // neither end requests CRCs (MPA)
	Markers string // the ends that request Markers: a, b, ab or none (MPA)
	ULPDU   int    // the largest DDP segment; 0: as the path allows (MPA)
	Plain   bool   // package net instead of raw sockets (TCP)
	Reads   int    // IRD and ORD; 0: the default
	Window  int    // octets that all outstanding RDMA Reads of an end may request, by a Solicitor; 0: no Solicitor
	SameCQ  bool   // the queue pairs of a host share their CQs
	Waits   bool   // wait for completions by CQ.Wait, which receives meanwhile, instead of QP.Drain
	Shuffle uint64 // segments or packets overtake one another, in an order that this number chooses
}

// The networks. Records is an in-memory layer below DDP, which only the test of the root package provides: see Runner.
const (
	TCP     = "tcp"
	TLS     = "tls"
	Pipe    = "pipe"
	SCTP    = "sctp"     // of the kernel
	SCTPUDP = "sctp+udp" // of user space
	Records = "records"
)

// EveryNetwork lists, separated by commas, the networks that a program of this module can be told to use.
const EveryNetwork = Pipe + "," + TCP + "," + TLS + "," + SCTPUDP + "," + SCTP

var networks = append(strings.Split(EveryNetwork, ","), Records)

// isMPA reports whether MPA frames the segments.
func (c Config) isMPA() bool { return c.Network == TCP || c.Network == TLS || c.Network == Pipe }

func (c Config) String() string {
	s := c.Network
	if c.NoCRC {
		s += " nocrc"
	}
	if c.Markers != "" {
		s += " markers=" + c.Markers
	}
	if c.ULPDU != 0 {
		s += fmt.Sprintf(" ulpdu=%d", c.ULPDU)
	}
	if c.Plain {
		s += " plain"
	}
	if c.Reads != 0 {
		s += fmt.Sprintf(" reads=%d", c.Reads)
	}
	if c.Window != 0 {
		s += fmt.Sprintf(" window=%d", c.Window)
	}
	if c.SameCQ {
		s += " samecq"
	}
	if c.Waits {
		s += " waits"
	}
	if c.Shuffle != 0 {
		s += fmt.Sprintf(" shuffle=%d", c.Shuffle)
	}
	return s
}

// ParseConfig reads what String has written.
func ParseConfig(s string) (c Config, err error) {
	words := strings.Fields(s)
	if len(words) == 0 || !slices.Contains(networks, words[0]) {
		return Config{}, fmt.Errorf("config %q: want one of %v", s, networks)
	}
	c.Network = words[0]
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "nocrc":
			c.NoCRC = true
		case "plain":
			c.Plain = true
		case "samecq":
			c.SameCQ = true
		case "waits":
			c.Waits = true
		case "markers":
			c.Markers = value
		case "ulpdu":
			c.ULPDU, err = strconv.Atoi(value)
		case "reads":
			c.Reads, err = strconv.Atoi(value)
		case "window":
			c.Window, err = strconv.Atoi(value)
		case "shuffle":
			c.Shuffle, err = strconv.ParseUint(value, 10, 64)
		default:
			err = fmt.Errorf("there is no option %q", w)
		}
		if err != nil {
			return Config{}, fmt.Errorf("config %q: %w", s, err)
		}
	}
	return c, nil
}

// DrawConfigs makes one Config for each of the networks, and a second one for TCP by package net, with random options.
func DrawConfigs(r *rand.Rand, networks ...string) []Config {
	var all []Config
	for _, n := range networks {
		all = append(all, drawConfig(r, n))
		if n == TCP {
			c := drawConfig(r, n)
			c.Plain = true
			all = append(all, c)
		}
	}
	return all
}

func drawConfig(r *rand.Rand, network string) Config {
	c := Config{Network: network, Reads: []int{0, 0, 1, 2}[r.IntN(4)], SameCQ: r.IntN(3) == 0, Waits: r.IntN(2) == 0}
	switch {
	case c.isMPA():
		c.NoCRC = r.IntN(2) == 0
		c.Markers = []string{"", "", "a", "b", "ab", "ab"}[r.IntN(6)]
		c.ULPDU = []int{0, 0, 96, 128, 500, 512, 1000, 1444, 2048}[r.IntN(9)]
	case network == Records || network == SCTPUDP && r.IntN(2) == 0:
		c.Shuffle = 1 + r.Uint64N(1<<16)
	}
	if r.IntN(3) == 0 {
		c.Window = messageLen // the length of the longest Read
	}
	return c
}

// plainer returns Configs with one option less, for Shrink.
func (c Config) plainer() []Config {
	var all []Config
	for _, change := range []func(*Config){
		func(c *Config) { c.NoCRC = false },
		func(c *Config) { c.Markers = "" },
		func(c *Config) { c.ULPDU = 0 },
		func(c *Config) { c.Plain = false },
		func(c *Config) { c.Reads = 0 },
		func(c *Config) { c.Window = 0 },
		func(c *Config) { c.SameCQ = false },
		func(c *Config) { c.Waits = false },
	} {
		d := c
		if change(&d); d != c {
			all = append(all, d)
		}
	}
	return all
}
