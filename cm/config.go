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

// A Mode is how a responder makes sure that a Request is fresh.
type Mode uint8

const (
	// ModeA uses two frames, and needs clocks: for peers that can exchange only private data.
	ModeA Mode = 1
	// ModeB adds a first message after the two frames, and needs no clock. It is the default.
	ModeB Mode = 2
)

var modeNames = [...]string{ModeA: "A", ModeB: "B"}

func (m Mode) String() string { return names.Of(m, modeNames[:], "mode %d") }

// A ModeSet is the set of modes that a responder accepts.
type ModeSet uint8

// Modes returns the set of these modes.
func Modes(modes ...Mode) (s ModeSet) {
	for _, m := range modes {
		s |= 1 << m
	}
	return s
}

// Has reports whether the mode is in the set.
func (s ModeSet) Has(m Mode) bool { return s&(1<<m) != 0 }

// A Suite is a set of algorithms.
type Suite uint8

const (
	// SuiteHMAC is HMAC-SHA256. It is the default.
	SuiteHMAC Suite = 1
	// SuiteX25519 is HMAC-SHA256, with X25519 for forward secrecy of exported key material.
	SuiteX25519 Suite = 2
)

func (s Suite) known() bool { return s == SuiteHMAC || s == SuiteX25519 }

// publicLen returns the length of the public key that the suite sends.
func (s Suite) publicLen() int {
	if s == SuiteX25519 {
		return publicSize
	}
	return 0
}

// Limits bound the resources of peers that are not authenticated. A zero field means the default
// after the colon.
//
// If a client abandons a set-up of mode B after its Request has been verified, that counts as a
// failure: the server cannot tell it from a Request that an attacker replays. FailureBurst should
// exceed the number of concurrent set-ups of a client with this server ([Options].PerHost): a client
// that abandons more at once is refused until FailureRate has made up for them.
type Limits struct {
	MaxHalfOpen int // set-ups in progress: 4096
	PerSource   int // set-ups in progress from one source: 512

	FailureRate  float64       // failures per second that a source may have: 20
	FailureBurst int           // failures at once: 100; after ten times as many more, the source is blocked without replies
	Block        time.Duration // how long that block lasts: 10 s
	Sources      int           // sources that are tracked: 65,536
	HMACs        int           // Requests that are verified per second: 20,000

	LogRate      int // records of the log per second: 100
	LogPerSource int // records per second for one source: 10
}

// A Config configures what an Auth proves and accepts. Ring is required. A zero field means the
// default, which follows the colon.
type Config struct {
	Ring *Ring
	// ID is the name of this side, both as a client and as a server.
	ID [16]byte

	// ExpectServer decides whether the server that answered is the right one; nil: any server that holds the
	// key is. If a client does not check this, servers that share a key can impersonate one another, and over
	// TLS so can any host whose certificate the client accepts. It is called in each set-up, whatever the address.
	ExpectServer func(iwarp.Peer) error
	// Authorize decides on a client, and the private data of its Request, before the application is
	// told about it; nil: each client that holds a key is accepted. A peer without authentication, where
	// that is allowed, is the zero Peer. In mode B, until the first message has arrived, the Request may
	// be one that an attacker replays.
	Authorize func(ctx context.Context, peer iwarp.Peer, app []byte) error

	Mode     Mode    // in which this side initiates: ModeB
	Accept   ModeSet // modes that a responder accepts: ModeB
	Suite    Suite   // with which this side initiates: SuiteHMAC
	MinSuite Suite   // the lowest suite that a responder accepts: SuiteHMAC

	// AllowUnauthenticated accepts peers that do not authenticate themselves at all. It does not
	// make this side connect to such peers.
	AllowUnauthenticated bool
	// AllowRev1 lets an initiator try MPA's revision 1 if a peer does not support revision 2.
	AllowRev1 bool

	Skew      time.Duration // by which clocks may differ in mode A: 30 s, at most 73 years
	CacheSize int           // Requests of mode A that are remembered, in each 2 x Skew: 262,144
	Store     CacheStore    // replaces the cache
	Retain    time.Duration // how long a key past its NotAfter is answered with KEY_RETIRED: 24 h
	Limits    Limits

	Logger *slog.Logger // for the illegal-access log; nil: only AccessLog returns its records

	// Now and Rand are for tests. Several goroutines use them.
	Now  func() time.Time
	Rand io.Reader
}

// maxSkew is the longest Skew with which all times that a replay cache or a CacheStore uses are representable.
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
