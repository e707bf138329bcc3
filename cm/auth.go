package cm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
)

// An Auth authenticates the set-up of connections, both as a client and as a server. All its
// listeners share its limits, cache and log.
type Auth struct {
	cfg     Config
	fresh   *freshness
	sources *sources
	open    halfOpen
	log     accessLog
	counts  counters

	lastID atomic.Uint32 // of sessions
}

var _ iwarp.Authenticator = (*Auth)(nil)

// New returns an Auth. The configuration is copied.
func New(cfg *Config) (*Auth, error) {
	if cfg == nil {
		cfg = new(Config)
	}
	c, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Auth{
		cfg:     c,
		fresh:   newFreshness(c.Now(), c.Skew, c.CacheSize, c.Store),
		sources: newSources(c.Limits),
		open:    halfOpen{most: c.Limits.MaxHalfOpen, perSource: c.Limits.PerSource, from: make(map[source]int)},
		log:     accessLog{rate: c.Limits.LogRate, logger: c.Logger},
	}, nil
}

// Format prints the name of the type, and no secret.
func (a *Auth) Format(s fmt.State, _ rune) { fmt.Fprint(s, "cm.Auth") }

// AllowRev1 reports whether an initiator may try MPA's revision 1.
func (a *Auth) AllowRev1() bool { return a.cfg.AllowRev1 }

// AccessLog returns the latest records of the illegal-access log, oldest first.
func (a *Auth) AccessLog() []AccessEvent { return a.log.list() }

// Initiate begins a set-up as the client.
func (a *Auth) Initiate(ctx context.Context, info *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	var retry iwarp.Authenticator
	if a.cfg.Mode == ModeA {
		retry = modeB{a}
	}
	return a.initiate(ctx, info, a.cfg.Mode, retry)
}

// modeB is an Auth that initiates in mode B, and has no Authenticator to retry with.
type modeB struct{ *Auth }

func (b modeB) Initiate(ctx context.Context, info *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return b.initiate(ctx, info, ModeB, nil)
}

func (a *Auth) initiate(ctx context.Context, info *iwarp.AuthInfo, m Mode, retry iwarp.Authenticator) (iwarp.AuthSession, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	ring := a.cfg.Ring.now.Load()
	if ring.primary == nil {
		return nil, errors.New("cm: the ring has no primary key to initiate with")
	}
	use := keyUse{keyID: ring.primary.ID, clientID: a.cfg.ID, suite: a.cfg.Suite, mode: m}
	i := &initiator{session: a.session(info), retry: retry}
	i.ring, i.use, i.keys = ring, use, ring.keys(ring.primary, use)
	if use.suite.publicLen() > 0 {
		private, err := a.ephemeral()
		if err != nil {
			return nil, err
		}
		i.private = private
	}
	return i, nil
}

// Respond begins a set-up as the server. It fails for a source that is blocked without replies.
func (a *Auth) Respond(ctx context.Context, info *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r := &responder{session: a.session(info), ctx: ctx, from: sourceOf(info.Remote), listener: info.Local}
	r.ring = a.cfg.Ring.now.Load()
	if now := a.cfg.Now(); a.sources.verdict(r.from, now) == verdictClosed {
		err := &Error{Reason: ReasonSourceClosed}
		r.report(err, now)
		return nil, err
	}
	return r, nil
}

// session returns the part of a session that both sides have in common.
func (a *Auth) session(info *iwarp.AuthInfo) session {
	most := info.MaxPrivate
	if most <= 0 {
		most = defaultMaxPrivate
	}
	return session{auth: a, id: a.lastID.Add(1), maxPrivate: most}
}

// A claim is what a Request says of its sender, for the log.
type claim struct {
	keyID    uint64
	clientID [16]byte
	mode     Mode
	suite    Suite
	time     uint64
}

// age returns how old the Request is by its own time; 0: it has none.
func (c *claim) age(now time.Time) time.Duration {
	if c.mode != ModeA || c.time == 0 {
		return 0
	}
	return now.Sub(time.Unix(0, int64(c.time)))
}
