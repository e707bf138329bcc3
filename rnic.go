package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/internal/freelist"
	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/mailbox"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/internal/tally"
	"github.com/goiwarp/iwarp/internal/tasks"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An RNIC owns the table of STags, the limits, and all objects that are created from it. A
// process usually has one. All methods of all objects may be called from any goroutine.
type RNIC struct {
	cfg    Config
	limits Limits
	log    *slog.Logger
	table  *stag.Table
	poller *transport.Poller
	events *mailbox.Box[Event]
	ids    quota.IDs // of PDs and QPs
	tasks  tasks.Group
	setups *setup.Manager
	ended  chan struct{} // closed when Close is complete

	sweeper *qpconn.Sweeper

	helpers   freelist.List[helper] // free list
	cqWaiters freelist.List[cqWaiter]

	used  usage
	tally tally.Tally

	mu   lockorder.Mutex[lockorder.Registry]
	life life
	qps  map[*QP]struct{}
	cqs  map[*CQ]struct{} // made by CreateCQ
}

// Config configures an RNIC. The zero value, like a nil *Config, means the defaults.
type Config struct {
	// Logger logs what an operator may want to know: connections that are refused during
	// set-up, and queue pairs that end with an error. If it is nil, nothing is logged.
	Logger *slog.Logger
	// Limits bounds every resource; zero fields mean defaults.
	Limits Limits
	// PeerTimeout limits the time until a vanished peer is detected. A peer has vanished if it
	// acknowledges neither data, nor probes of its closed window, nor keep-alive probes. The
	// default is 15 s. A negative value sets no limit over TCP, where the probes of package net and
	// the operating system's own limits remain; over SCTP it means 15 s. A peer that acknowledges
	// but does not read has not vanished; that state may last as long as the peer's own RNRWait
	// allows. For systems other than Linux, the build tag purego and Multipath TCP, see
	// [transport.SetPeerTimeout].
	PeerTimeout time.Duration
	// CloseTimeout limits how long QP.Close waits for outstanding work and for the end of the
	// peer's half. The default, also for a negative value, is 5 s.
	CloseTimeout time.Duration
	// PlainIO makes every TCP connection use package net, with goroutines that park in the Go
	// runtime, as on systems other than Linux. That is slower, and takes a goroutine for each
	// idle connection. Use it if the library's own system calls and poller are suspected of
	// causing a problem. The environment variable IWARP_PLAIN_IO=1 has the same effect.
	// QPStats.Path shows which path a QP uses.
	PlainIO bool
	// Latency measures how long each work request takes, from PostSend to its completion, for
	// [RNIC.Stats]. This costs two clock readings and two atomic additions for each work request.
	Latency bool
	// ListenPacket, if not nil, opens the UDP sockets of network "sctp+udp" instead of a
	// net.ListenConfig. Its network argument is "udp".
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
}

const (
	defaultPeerTimeout  = 15 * time.Second
	defaultCloseTimeout = 5 * time.Second
	eventDepth          = 256
	spareWaiters        = 16
)

// Open creates an RNIC. End it with [RNIC.Shutdown], or at once with [RNIC.Close].
func Open(cfg *Config) (*RNIC, error) {
	r := &RNIC{
		helpers:   freelist.List[helper]{Retain: spareWaiters},
		cqWaiters: freelist.List[cqWaiter]{Retain: spareWaiters},
		table:     stag.NewTable(),
		events:    mailbox.New[Event](eventDepth),
		qps:       make(map[*QP]struct{}),
		cqs:       make(map[*CQ]struct{}),
		ended:     make(chan struct{}),
	}
	if cfg != nil {
		r.cfg = *cfg
	}
	r.cfg.PeerTimeout = cmp.Or(r.cfg.PeerTimeout, defaultPeerTimeout)
	if r.cfg.CloseTimeout <= 0 {
		r.cfg.CloseTimeout = defaultCloseTimeout
	}
	if os.Getenv("IWARP_PLAIN_IO") == "1" {
		r.cfg.PlainIO = true
	}
	r.log = r.cfg.Logger
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.limits, err = r.cfg.Limits.withDefaults(); err != nil {
		return nil, err
	}
	if r.poller, err = transport.NewPoller(); err != nil {
		return nil, fmt.Errorf("iwarp: open: %w", err)
	}
	r.setups = setup.New(setup.Config{
		Log: r.log, Poller: r.poller, PlainIO: r.cfg.PlainIO, PeerTimeout: r.cfg.PeerTimeout,
		ListenPacket: r.cfg.ListenPacket, Start: r.tasks.Start,
		Closed: errRNICClosed, Auth: ErrAuth, Unsupported: ErrUnsupported, Limit: ErrLimit, MaxHalfOpen: r.limits.MaxHalfOpen,
	})
	r.tally.Init(r.cfg.Latency, opNames[:OpCommit+1])
	r.sweeper = qpconn.NewSweeper(r.poller.SetAlarm)
	return r, nil
}

// Limits returns the limits in effect, with defaults filled in.
func (r *RNIC) Limits() Limits { return r.limits }

// Close aborts every queue pair, so the data sent last may not arrive (see [RNIC.Shutdown]).
// It ends every listener, waits until all goroutines of the RNIC have ended, and closes the
// channel of Events. Regions stay readable and writable locally; no peer can access them any
// more. Waits on a CQ of the RNIC end with net.ErrClosed when all of its completions have been
// taken.
//
// A method of a Buffer, a Flusher or a net.Conn that does not return keeps the RNIC from closing,
// but Close waits no longer than Config.CloseTimeout. It then returns an error that matches
// os.ErrDeadlineExceeded, and the RNIC closes when the method returns; another Close waits for
// that. If Close is called from inside such a method, it returns an error at once.
func (r *RNIC) Close() error {
	r.mu.Lock()
	first, qps := r.life < rnicClosed, slices.Collect(maps.Keys(r.qps))
	r.life = rnicClosed
	r.mu.Unlock()
	if first {
		go r.end(qps)
	}
	err := endwait.Ended("the RNIC", r.ended, r.cfg.CloseTimeout)
	if errors.Is(err, endwait.ErrHeldUp) {
		r.shutCQs()
	}
	return err
}

// shutCQs ends all waits on CQs.
func (r *RNIC) shutCQs() {
	r.mu.Lock()
	cqs := slices.Collect(maps.Keys(r.cqs))
	r.mu.Unlock()
	for _, cq := range cqs {
		cq.shut()
	}
}

// end ends everything that existed when the RNIC was closed, and waits until it has ended.
func (r *RNIC) end(qps []*QP) {
	r.setups.Refuse(errRNICClosed)
	for _, qp := range qps {
		qp.abort(errAborted)
	}
	r.setups.Wait()
	for _, qp := range qps {
		<-qp.done
	}
	r.setups.Close()
	r.tasks.Wait()
	r.shutCQs()
	_ = r.poller.Close() // fails only if it was closed before
	r.events.Close()
	close(r.ended)
}

// AllocPD allocates a protection domain. It fails with an error that matches ErrLimit, or
// net.ErrClosed after Close of the RNIC.
func (r *RNIC) AllocPD() (*PD, error) {
	if err := r.take(&r.used.pd, r.limits.MaxPD, "PDs"); err != nil {
		return nil, err
	}
	return &PD{rnic: r, id: r.ids.Next()}, nil
}

// take reserves one unit of a limited resource; c is a counter of RNIC.used.
func (r *RNIC) take(c *quota.Count, limit int, what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life == rnicClosed {
		return errRNICClosed
	}
	if !c.Take(limit) {
		return fmt.Errorf("%w: all %d %s are in use (Config.Limits)", ErrLimit, limit, what)
	}
	return nil
}

var errRNICClosed = fmt.Errorf("iwarp: RNIC closed: %w", net.ErrClosed)
