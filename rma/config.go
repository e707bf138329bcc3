package rma

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
)

// A ServerConfig says what a Server allows. Zero fields have defaults, but for PD.
type ServerConfig struct {
	PD *iwarp.PD // of the QPs

	// Authorize returns which of the rights that a client asks for it gets, as far as the region has them; 0: none.
	// The goroutine of the connection calls it for each Open, and waits for it. It may be called for several connections
	// at the same time, and with any number: that of a region which does not exist is asked about too, so that the
	// time of an answer does not tell the client that. nil: each peer gets what the region has, and with Insecure one without an
	// identity does, too.
	Authorize func(peer iwarp.Peer, region uint64, ops Ops) Ops

	Insecure bool // operations without keys are possible, if the client allows them too
	AES256   bool // AES-128 is not enough

	MaxOp int // octets of an operation, 512 to 65,536: 4,096
	Depth int // requests that each client may have unanswered, 1 to 65,535: 64
	// QueueDepth is how many requests of a connection may wait or be under way to their answers, and how
	// many writes of all connections together may wait for the window: 1,024. Those beyond are refused (NACK).
	QueueDepth   int
	PullTimeout  time.Duration    // from when a write is asked for its octets until they are there, 1 ms to 30 s: 500 ms
	Guard        time.Duration    // by which clients wait longer than that, 10 ms + PullTimeout/1000 to 30 s: 100 ms
	Linger       time.Duration    // how long the octets of an operation that timed out may still come, up to 10 s: 250 ms; negative: 0
	Dispatch     [2]time.Duration // how long writes wait for the window, by class, up to 10 s: 20 and 200 ms; negative: no limit
	HelloTimeout time.Duration    // until the first message of the peer has come: 10 s

	MaxRegions  int // 65,536
	MaxFailures int // requests with a key that the client never had, per second and connection, before it is ended: 100
	CacheSize   int // traffic keys that are kept: 4,096
	// ScratchLimit is how many octets of memory there are for what is under way on all connections: 16 MiB, and at
	// least MaxOp and 16, which one operation needs. A connection keeps what it has used, unless more than half is in use. One
	// whose peer takes nothing of what is to be sent for a minute ends.
	ScratchLimit int

	Solicitor *Solicitor // of NewSolicitor; nil: the server has one of its own, of automatic size
	// Logger gets the records of the audit log; nil: AuditLog has them alone. Its Handler delays the
	// connection, and must not call methods of this package.
	Logger *slog.Logger
}

// A ClientConfig says how a Client asks. Zero fields have defaults, but for PD.
type ClientConfig struct {
	PD *iwarp.PD // of the QP

	// Server serves its regions on the same connection; nil: the peer cannot ask for anything. PD,
	// Insecure, AES256, MaxOp and HelloTimeout of the connection are those of the ClientConfig.
	Server *Server
	// Responder says that this side has accepted the connection. The peer, which has dialled, must be a
	// Client without it.
	Responder bool

	Insecure bool // operations without keys are possible, if the server allows them too
	AES256   bool // AES-128 is not enough

	MaxOp        int              // octets of an operation, 512 to 65,536: 4,096
	MaxSlots     int              // of all Portals of this Client, 1 to 4,096: 64
	Slots        *Slots           // the budget that they are taken from; nil: no other limit
	OpTimeout    time.Duration    // until the server answers, 1 ms to 60 s: 1 s
	Dispatch     [2]time.Duration // how long operations wait until they are sent, by class, up to 10 s: 20 and 200 ms; negative: no limit
	HelloTimeout time.Duration    // until the first message of the peer has come: 10 s
	ScratchLimit int              // octets of memory for what is under way, at least MaxOp and 16: 16 MiB; with Server its limit is that of both

	Solicitor *Solicitor // of NewSolicitor; nil: that of Server, or one of its own, of automatic size
}

const (
	defaultMaxOp       = 4096
	defaultDepth       = 64
	maxDepth           = 65535
	defaultQueue       = 1024
	defaultSlots       = 64
	maxSlots           = 4096
	defaultScratch     = 16 << 20
	defaultOpTimeout   = time.Second
	defaultPullTimeout = 500 * time.Millisecond
	defaultGuard       = 100 * time.Millisecond
	defaultLinger      = 250 * time.Millisecond
	defaultHello       = 10 * time.Second
	maxDispatch        = 10 * time.Second
	minOpTimeout       = time.Millisecond
	maxOpTimeout       = time.Minute
)

var defaultDispatch = [2]time.Duration{solicit.DispatchLatency, solicit.DispatchBulk}

// withDefaults returns the configuration with all fields set.
func (c ServerConfig) withDefaults() (ServerConfig, error) {
	c.MaxOp = cmp.Or(c.MaxOp, defaultMaxOp)
	c.Depth = cmp.Or(c.Depth, defaultDepth)
	c.QueueDepth = cmp.Or(c.QueueDepth, defaultQueue)
	c.PullTimeout = cmp.Or(c.PullTimeout, defaultPullTimeout)
	c.Guard = cmp.Or(c.Guard, max(defaultGuard, op.MinGuard(c.PullTimeout)))
	c.Linger = cmp.Or(c.Linger, defaultLinger)
	c.Linger = max(c.Linger, 0)
	c.Dispatch = dispatchTimes(c.Dispatch)
	c.HelloTimeout = cmp.Or(c.HelloTimeout, defaultHello)
	c.MaxRegions = cmp.Or(c.MaxRegions, 65536)
	c.MaxFailures = cmp.Or(c.MaxFailures, 100)
	c.CacheSize = cmp.Or(c.CacheSize, 4096)
	c.ScratchLimit = cmp.Or(c.ScratchLimit, defaultScratch)
	return c, c.check()
}

// dispatchTimes is what 0 and negative times mean; then 0 means no limit, as in package op.
func dispatchTimes(d [2]time.Duration) [2]time.Duration {
	for i := range d {
		d[i] = cmp.Or(d[i], defaultDispatch[i])
		d[i] = max(d[i], 0)
	}
	return d
}

func (c *ServerConfig) check() error {
	if c.PD == nil {
		return errors.New("rma: ServerConfig.PD is nil")
	}
	if c.Solicitor != nil && c.Solicitor.window == nil {
		return errors.New("rma: ServerConfig.Solicitor was not made by NewSolicitor")
	}
	return cmp.Or(
		within("ServerConfig.MaxOp", c.MaxOp, wire.MinMaxOp, wire.MaxMaxOp),
		within("ServerConfig.Depth", c.Depth, 1, maxDepth),
		within("ServerConfig.PullTimeout", c.PullTimeout, wire.MinPullTimeout, wire.MaxPullTimeout),
		within("ServerConfig.Guard", c.Guard, op.MinGuard(c.PullTimeout), wire.MaxGuard),
		within("ServerConfig.Linger", c.Linger, 0, wire.MaxLinger),
		quota.Negative("rma: ServerConfig", *c),
		holdsOne("ServerConfig.ScratchLimit", c.ScratchLimit, c.MaxOp),
		within("ServerConfig.Dispatch", max(c.Dispatch[0], c.Dispatch[1]), 0, maxDispatch),
	)
}

// withDefaults returns the configuration with all fields set.
func (c ClientConfig) withDefaults() (ClientConfig, error) {
	c.MaxOp = cmp.Or(c.MaxOp, defaultMaxOp)
	c.MaxSlots = cmp.Or(c.MaxSlots, defaultSlots)
	c.OpTimeout = cmp.Or(c.OpTimeout, defaultOpTimeout)
	c.Dispatch = dispatchTimes(c.Dispatch)
	c.HelloTimeout = cmp.Or(c.HelloTimeout, defaultHello)
	c.ScratchLimit = cmp.Or(c.ScratchLimit, defaultScratch)
	return c, c.check()
}

func (c *ClientConfig) check() error {
	if c.PD == nil {
		return errors.New("rma: ClientConfig.PD is nil")
	}
	if c.Solicitor != nil && c.Solicitor.window == nil {
		return errors.New("rma: ClientConfig.Solicitor was not made by NewSolicitor")
	}
	limit, of := c.ScratchLimit, "ClientConfig.ScratchLimit"
	if c.Server != nil {
		limit, of = c.Server.cfg.ScratchLimit, "ServerConfig.ScratchLimit"
	}
	return cmp.Or(
		within("ClientConfig.MaxOp", c.MaxOp, wire.MinMaxOp, wire.MaxMaxOp),
		within("ClientConfig.MaxSlots", c.MaxSlots, 1, maxSlots),
		within("ClientConfig.OpTimeout", c.OpTimeout, minOpTimeout, maxOpTimeout),
		quota.Negative("rma: ClientConfig", *c),
		holdsOne(of, limit, c.MaxOp),
		within("ClientConfig.Dispatch", max(c.Dispatch[0], c.Dispatch[1]), 0, maxDispatch),
	)
}

// holdsOne refuses a limit of memory with which each operation of the largest size would fail.
func holdsOne(what string, limit, maxOp int) error {
	if need := maxOp + regionkey.TagSize; limit < need {
		return fmt.Errorf("rma: %s is %d, and an operation of MaxOp needs %d", what, limit, need)
	}
	return nil
}

func within[T int | time.Duration](what string, v, least, most T) error {
	if v < least || v > most {
		return fmt.Errorf("rma: %s is %v, which is not between %v and %v", what, v, least, most)
	}
	return nil
}
