package cm

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/names"
	"github.com/goiwarp/iwarp/internal/quota"
)

// A Mode is how a responder knows that a Request is not an old one.
type Mode uint8

const (
	// ModeA has two frames, and needs clocks: for peers that can exchange private data alone.
	ModeA Mode = 1
	// ModeB has a first message behind them, and needs no clock. It is the default.
	ModeB Mode = 2
)

var modeNames = [...]string{ModeA: "A", ModeB: "B"}

func (m Mode) String() string { return names.Of(m, modeNames[:], "mode %d") }

// A ModeSet says which modes a responder accepts.
type ModeSet uint8

// Modes is the set of these modes.
func Modes(modes ...Mode) (s ModeSet) {
	for _, m := range modes {
		s |= 1 << m
	}
	return s
}

// Has reports whether the mode is in the set.
func (s ModeSet) Has(m Mode) bool { return s&(1<<m) != 0 }

// A Suite says which algorithms are used.
type Suite uint8

const (
	// SuiteHMAC is HMAC-SHA256. It is the default.
	SuiteHMAC Suite = 1
	// SuiteX25519 is HMAC-SHA256, with X25519 for forward secrecy of what Export gives.
	SuiteX25519 Suite = 2
)

func (s Suite) known() bool { return s == SuiteHMAC || s == SuiteX25519 }

// publicLen is how many octets of public key the suite sends.
func (s Suite) publicLen() int {
	if s == SuiteX25519 {
		return publicSize
	}
	return 0
}

// Limits bound what peers that are not authenticated can use. Zero fields are the defaults.
//
// A client that gives up a set-up of mode B, or dies, when its Request has been verified has failed,
// too: the server cannot tell it from a Request that an attacker repeats. FailureBurst should be
// above the set-ups that a client has under way with this server ([Options].PerHost): one that
// gives up more at once is refused until FailureRate has made up for them.
type Limits struct {
	MaxHalfOpen int // set-ups under way: 4096
	PerSource   int // of them from one source: 512

	FailureRate  float64       // failures per second that a source may have: 20
	FailureBurst int           // at once: 100; after ten times as many more it is blocked without replies
	Block        time.Duration // for that long: 10 s
	Sources      int           // sources that are remembered: 65,536
	HMACs        int           // Requests that are verified per second: 20,000

	LogRate      int // records of the log per second: 100
	LogPerSource int // and for one source: 10
}

// A Config says how an Auth proves itself and what it accepts. Zero fields have defaults, but
// for Ring.
type Config struct {
	Ring *Ring
	// ID is the name of this side: as a client, and as a server.
	ID [16]byte

	// ExpectServer judges the server that has answered; nil: any that holds the key is right.
	// Servers that share a key can stand in for one another if a client does not check this, and over
	// TLS any host can whose certificate the client accepts. It is asked in each set-up, whatever the address.
	ExpectServer func(iwarp.Peer) error
	// Authorize judges a client, and the private data of its Request, before the application
	// learns of it; nil: each that holds a key is accepted. A peer without authentication, where
	// that is allowed, is the zero Peer. In mode B the Request may be an old one that an attacker
	// repeats, until the first message has come.
	Authorize func(ctx context.Context, peer iwarp.Peer, app []byte) error

	Mode     Mode    // in which it initiates: ModeB
	Accept   ModeSet // which it accepts: ModeB
	Suite    Suite   // with which it initiates: SuiteHMAC
	MinSuite Suite   // which it accepts at least: SuiteHMAC

	// AllowUnauthenticated accepts peers that do not authenticate themselves at all. It does not
	// make this side connect to such ones.
	AllowUnauthenticated bool
	// AllowRev1 lets an initiator try MPA's revision 1 where a peer does not know revision 2.
	AllowRev1 bool

	Skew      time.Duration // by which clocks may differ in mode A: 30 s, at most 73 years
	CacheSize int           // Requests of mode A that are remembered, in each 2 x Skew: 262,144
	Store     CacheStore    // in place of the cache
	Retain    time.Duration // for which a key past its NotAfter is answered with KEY_RETIRED: 24 h
	Limits    Limits

	Logger *slog.Logger // for the illegal-access log; nil: AccessLog has it alone

	// Now and Rand are for tests. Both are used by several goroutines.
	Now  func() time.Time
	Rand io.Reader
}

// maxSkew is the longest Skew of which all times that a replay cache, or a CacheStore, goes by can be told.
const maxSkew = time.Duration(math.MaxInt64 / 4)

// withDefaults returns the configuration with all fields set.
func (c Config) withDefaults() (Config, error) {
	if c.Ring == nil {
		return c, errors.New("cm: Config.Ring is nil")
	}
	if c.Ring.now.Load() == nil {
		return c, errors.New("cm: Config.Ring has no keys: it was not made by NewRing")
	}
	c.Mode = cmp.Or(c.Mode, ModeB)
	c.Accept = cmp.Or(c.Accept, Modes(ModeB))
	c.Suite = cmp.Or(c.Suite, SuiteHMAC)
	c.MinSuite = cmp.Or(c.MinSuite, SuiteHMAC)
	c.Skew = cmp.Or(c.Skew, 30*time.Second)
	c.CacheSize = cmp.Or(c.CacheSize, 262144)
	c.Retain = cmp.Or(c.Retain, 24*time.Hour)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Rand = cmp.Or(c.Rand, rand.Reader)
	c.Limits = c.Limits.withDefaults()
	return c, c.check()
}

func (l Limits) withDefaults() Limits {
	l.MaxHalfOpen = cmp.Or(l.MaxHalfOpen, 4096)
	l.PerSource = cmp.Or(l.PerSource, 512)
	l.FailureRate = cmp.Or(l.FailureRate, 20)
	l.FailureBurst = cmp.Or(l.FailureBurst, 100)
	l.Block = cmp.Or(l.Block, 10*time.Second)
	l.Sources = cmp.Or(l.Sources, 65536)
	l.HMACs = cmp.Or(l.HMACs, 20000)
	l.LogRate = cmp.Or(l.LogRate, 100)
	l.LogPerSource = cmp.Or(l.LogPerSource, 10)
	return l
}

func (c *Config) check() error {
	if c.Mode != ModeA && c.Mode != ModeB {
		return fmt.Errorf("cm: Config.Mode is no mode: %d", c.Mode)
	}
	if c.Accept&^Modes(ModeA, ModeB) != 0 {
		return fmt.Errorf("cm: Config.Accept has modes that do not exist: %#x", uint8(c.Accept))
	}
	if !c.Suite.known() || !c.MinSuite.known() {
		return fmt.Errorf("cm: Config.Suite or MinSuite is no suite: %d, %d", c.Suite, c.MinSuite)
	}
	if c.Suite < c.MinSuite {
		return fmt.Errorf("cm: Config.Suite %d is below MinSuite %d", c.Suite, c.MinSuite)
	}
	if err := quota.Negative("cm: Config", *c); err != nil {
		return err
	}
	if c.Skew > maxSkew {
		return fmt.Errorf("cm: Config.Skew is %v, above %v", c.Skew, maxSkew)
	}
	return c.Limits.check()
}

func (l *Limits) check() error {
	if math.IsNaN(l.FailureRate) { // no level is below one token then
		return errors.New("cm: Config.Limits.FailureRate is not a number")
	}
	return quota.Negative("cm: Config.Limits", *l)
}
