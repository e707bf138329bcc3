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

// A ServerConfig configures a Server. PD is required. A zero number means the default after the colon.
type ServerConfig struct {
	PD *iwarp.PD // of the QPs

	// Authorize returns the rights to grant, out of those that a client requests; 0: none. Rights that the region
	// does not offer are never granted. The goroutine of the connection calls Authorize for each Open, and waits
	// for it; calls for several connections may run at the same time. Authorize is also called for regions that do
	// not exist, so that the response time does not reveal to the client whether a region exists. nil: each peer gets
	// all the rights it requests that the region offers; with Insecure, so does a peer without an identity.
	Authorize func(peer iwarp.Peer, region uint64, ops Ops) Ops

	Insecure bool // allow operations without keys, if the client allows them too
	AES256   bool // refuse AES-128

	MaxOp int // octets of an operation, 512 to 65,536: 4,096
	Depth int // requests that each client may have unanswered, 1 to 65,535: 64
	// QueueDepth limits the requests of one connection that wait or are being served, and also the writes of all
	// connections together that wait for the window: 1,024. Requests beyond the limit are refused (NACK).
	QueueDepth   int
	PullTimeout  time.Duration    // limit from the request for a write's octets to the start of their copy, 1 ms to 30 s: 500 ms
	Guard        time.Duration    // how much longer than PullTimeout clients wait, 10 ms + PullTimeout/1000 to 30 s: 100 ms
	Linger       time.Duration    // how long the octets of a timed-out operation may still arrive, up to 10 s: 250 ms; negative: 0
	Dispatch     [2]time.Duration // how long writes wait for the window, by class, up to 10 s: 20 and 200 ms; negative: no limit
	HelloTimeout time.Duration    // until the peer's first message must have arrived: 10 s

	MaxRegions  int // 65,536
	MaxFailures int // authentication failures per second that a connection may have, not counting outdated keys: 100
	CacheSize   int // cached traffic keys: 4,096
	// ScratchLimit is the number of octets of memory for outstanding operations of all connections: 16 MiB. It must
	// be at least MaxOp plus 16, which one operation needs. A connection keeps the memory it has used, unless more
	// than half of the limit is in use. A connection ends if its peer accepts no queued data for a minute.
	ScratchLimit int

	Solicitor *Solicitor // from NewSolicitor; nil: the server has one of its own, of automatic size
	// Logger receives the records of the audit log; nil: only AuditLog returns them. Its Handler delays the
	// connection, and must not call methods of this package.
	Logger *slog.Logger
}

// A ClientConfig configures a Client. PD is required. A zero number means the default after the colon.
type ClientConfig struct {
	PD *iwarp.PD // of the QP

	// Server serves its regions on the same connection; nil: the peer cannot request anything. The
	// ClientConfig determines PD, Insecure, AES256, MaxOp and HelloTimeout of the connection.
	Server *Server
	// Responder is set if this side accepted the connection. The peer, which dialled, must be a Client
	// that does not set it.
	Responder bool

	Insecure bool // allow operations without keys, if the server allows them too
	AES256   bool // refuse AES-128

	MaxOp        int              // octets of an operation, 512 to 65,536: 4,096
	MaxSlots     int              // of all Portals of this Client, 1 to 4,096: 64
	Slots        *Slots           // the budget that the slots are taken from; nil: no other limit
	OpTimeout    time.Duration    // until the server answers, 1 ms to 60 s: 1 s
	Dispatch     [2]time.Duration // how long operations wait until they are sent, by class, up to 10 s: 20 and 200 ms; negative: no limit
	HelloTimeout time.Duration    // until the peer's first message must have arrived: 10 s
	ScratchLimit int              // octets of memory for outstanding operations, at least MaxOp plus 16: 16 MiB; with Server, the Server's limit is used

	Solicitor *Solicitor // from NewSolicitor; nil: that of Server, or one of its own, of automatic size
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

// dispatchTimes replaces 0 by the default and negative times by 0, which means no limit in package op.
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

// holdsOne refuses a memory limit under which each operation of the largest size would fail.
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
