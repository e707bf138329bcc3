package rdma9p

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/goiwarp/iwarp"
)

// A Config configures Serve. PD of the field QP must be set; zero values elsewhere mean the defaults.
type Config struct {
	// MaxMsize is the largest msize, and so the largest message in either direction: 256 KiB by default. It is at
	// least 4096 and at most 1 MiB, the most that Linux uses over RDMA.
	MaxMsize int
	// Depth is how many requests of a connection the handler may have at a time, and how many receives the connection has: 64
	// by default, and at most 65,528, or fewer if an int has 32 bits and MaxMsize is large. A peer that sends more has to wait
	// for answers. Each receive, and each of as many answer buffers, has msize octets; memory that was never used costs nothing.
	Depth int
	// SRQ, if it is not 0, is the number of receives, of MaxMsize octets each, that all connections share instead of having
	// their own. It is for peers that trust each other: Depth is how many of these receives one connection may occupy.
	SRQ int
	// ReadOnly refuses, with EROFS, all requests that may change something. The handler does not see them.
	ReadOnly bool
	// MaxFids is how many fids a connection may have in use: 65,536 by default. A connection that uses more ends.
	MaxFids int
	// VersionTimeout is how long a connection may exist without a session: 30 s by default. There is no other limit: Linux
	// never connects again, so an idle mount must not lose its connection.
	VersionTimeout time.Duration
	// DrainTimeout is how long the requests that the handler still has when Serve ends may take: 30 s by default. After that
	// the connection is aborted.
	DrainTimeout time.Duration
	// QP is the configuration of the QPs. Serve sets its CQs, its SRQ, the depths of its queues, IRD, ORD and PrivateData.
	QP iwarp.QPConfig
	// Logger logs the ends of connections, with level Info if they are graceful, and errors of a handler; nil: nothing is
	// logged.
	Logger *slog.Logger
}

const (
	defaultMsize   = 256 << 10
	largestMsize   = 1 << 20
	defaultDepth   = 64
	defaultFids    = 65536
	defaultTimeout = 30 * time.Second

	// spareSends is how many more sends than receives there may be: the adapter's own answers need no buffer.
	spareSends = 8
	// maxSends is the default of Limits.MaxQueueDepth.
	maxSends = 65536
)

var errNoPD = errors.New("9p: Config.QP has no PD")

// withDefaults checks a configuration and fills in the defaults.
func (c *Config) withDefaults() (*Config, error) {
	if c == nil || c.QP.PD == nil {
		return nil, errNoPD
	}
	d := *c
	d.MaxMsize = cmp.Or(d.MaxMsize, defaultMsize)
	d.Depth = cmp.Or(d.Depth, defaultDepth)
	d.MaxFids = cmp.Or(d.MaxFids, defaultFids)
	d.VersionTimeout = cmp.Or(d.VersionTimeout, defaultTimeout)
	d.DrainTimeout = cmp.Or(d.DrainTimeout, defaultTimeout)
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case d.MaxMsize < minMsize || d.MaxMsize > largestMsize:
		return nil, fmt.Errorf("9p: MaxMsize is %d, not from %d to %d", d.MaxMsize, minMsize, largestMsize)
	case d.Depth < 0 || d.SRQ < 0 || d.MaxFids < 0 || d.VersionTimeout < 0 || d.DrainTimeout < 0:
		return nil, fmt.Errorf("9p: Depth is %d, SRQ %d, MaxFids %d, VersionTimeout %v and DrainTimeout %v, and none may be negative",
			d.Depth, d.SRQ, d.MaxFids, d.VersionTimeout, d.DrainTimeout)
	case d.Depth > d.maxDepth():
		return nil, fmt.Errorf("9p: Depth is %d, above %d", d.Depth, d.maxDepth())
	case d.SRQ > math.MaxInt/d.MaxMsize:
		return nil, fmt.Errorf("9p: SRQ is %d, above %d", d.SRQ, math.MaxInt/d.MaxMsize)
	}
	q := &d.QP
	q.SendCQ, q.RecvCQ, q.SRQ, q.PrivateData = nil, nil, nil, nil
	q.SendDepth, q.RecvDepth = d.Depth+spareSends, d.Depth
	q.IRD, q.ORD = -1, -1 // 9P uses no RDMA Reads
	return &d, nil
}

// maxDepth returns the maximum of Depth: there are as many sends, and some more, which all have MaxMsize octets.
func (c *Config) maxDepth() int { return min(maxSends, math.MaxInt/c.MaxMsize) - spareSends }
