package iwarp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/endwait"
	"github.com/goiwarp/iwarp/internal/freelist"
	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/mailbox"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/internal/setup"
	"github.com/goiwarp/iwarp/internal/tasks"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An RNIC is where everything begins: it owns the table of STags, the limits, and
// all objects made from it. A process usually has one. All methods of all objects
// may be called from any goroutine.
type RNIC struct {
	cfg    Config
	limits Limits
	log    *slog.Logger
	table  *stag.Table
	poller *transport.Poller
	events *mailbox.Box[Event]
	ids    atomic.Uint32 // identities of PDs and QPs
	tasks  tasks.Group
	setups *setup.Manager
	ended  chan struct{} // closed when Close has ended everything

	sweeper *qpconn.Sweeper

	helpers   freelist.List[helper] // spare ones
	cqWaiters freelist.List[cqWaiter]

	used usage

	mu   lockorder.Mutex[lockorder.Registry]
	life life
	qps  map[*QP]struct{}
	cqs  map[*CQ]struct{} // those of CreateCQ
}

// Config configures an RNIC. The zero value, like a nil *Config, means defaults.
type Config struct {
	// Logger gets what an operator may want to know: connections refused during
	// set-up, queue pairs that ended with an error. nil: nothing is logged.
	Logger *slog.Logger
	// Limits caps every resource; zero fields take defaults.
	Limits Limits
	// PeerTimeout is how long a peer that has vanished (no acknowledgement of data, of
	// probes of its closed window, or of keep-alive probes) stays unnoticed at most: 15 s by
	// default, negative: as long as the system likes. A peer that acknowledges, and takes
	// nothing, is there for as long as it likes: what bounds its patience is RNRWait. For
	// what other systems than Linux do see [transport.SetPeerTimeout].
	PeerTimeout time.Duration
	// CloseTimeout bounds how long QP.Close waits for outstanding work and for the
	// peer's end: 5 s by default.
	CloseTimeout time.Duration
	// PlainIO has every TCP connection driven through package net, by goroutines that park in
	// the Go runtime, as on systems other than Linux: slower, and with a goroutine for
	// each idle connection. It is a way out where the system calls of the library's own, and
	// its poller, are suspected of something. The environment variable IWARP_PLAIN_IO=1 has
	// the same effect. QPStats.Path tells what a QP uses.
	PlainIO bool
	// ListenPacket, if not nil, opens the UDP sockets of network "sctp+udp" in place of
	// a net.ListenConfig. Its network is "udp".
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
}

const (
	defaultPeerTimeout  = 15 * time.Second
	defaultCloseTimeout = 5 * time.Second
	eventDepth          = 256
	spareWaiters        = 16
)

// Open makes an RNIC. When done end it with [RNIC.Shutdown], or at once with [RNIC.Close].
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
	if r.cfg.PeerTimeout == 0 {
		r.cfg.PeerTimeout = defaultPeerTimeout
	}
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
		Closed: errRNICClosed, Unsupported: ErrUnsupported, Limit: ErrLimit, MaxHalfOpen: r.limits.MaxHalfOpen,
	})
	r.sweeper = qpconn.NewSweeper(r.poller.SetAlarm)
	return r, nil
}

// Limits returns the limits in force, defaults filled in.
func (r *RNIC) Limits() Limits { return r.limits }

// Close aborts every queue pair, so that what was sent last may not arrive (see
// [RNIC.Shutdown]), ends every listener, and waits until all
// goroutines of the RNIC have ended. Then it closes the channel of Events. Regions
// stay readable and writable locally; no peer can reach them any more. Waiting on a CQ of
// the RNIC ends with net.ErrClosed once its completions have been taken.
//
// A Buffer or a Flusher of this program that does not return holds that up, but Close for no
// longer than Config.CloseTimeout: then it returns an error that matches
// os.ErrDeadlineExceeded, and the rest ends when that code returns. Another Close waits for
// it again. From inside a Buffer's method Close returns at once, with an error.
func (r *RNIC) Close() error {
	if qps, first := r.beginClose(); first {
		go r.finishClose(qps)
	}
	err := endwait.Ended("the RNIC", r.ended, r.cfg.CloseTimeout)
	if errors.Is(err, endwait.ErrHeldUp) {
		r.shutCQs()
	}
	return err
}

// beginClose begins the end of everything, without waiting, and returns the QPs that end.
// first is false if that has begun before.
func (r *RNIC) beginClose() (qps []*QP, first bool) {
	r.mu.Lock()
	if r.life == rnicClosed {
		r.mu.Unlock()
		return nil, false
	}
	r.life = rnicClosed
	all := slices.Collect(maps.Keys(r.qps))
	r.mu.Unlock()

	r.setups.Refuse(errRNICClosed)
	for _, qp := range all {
		if qp.conn.Load() != nil { // else its set-up ends
			qp.abort(errAborted)
			qps = append(qps, qp)
		}
	}
	return qps, true
}

// shutCQs ends all waiting on CQs.
func (r *RNIC) shutCQs() {
	r.mu.Lock()
	cqs := slices.Collect(maps.Keys(r.cqs))
	r.mu.Unlock()
	for _, cq := range cqs {
		cq.shut()
	}
}

// finishClose waits for everything that beginClose has ended.
func (r *RNIC) finishClose(qps []*QP) {
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

// AllocPD makes a protection domain.
func (r *RNIC) AllocPD() (*PD, error) {
	if err := r.take(&r.used.pd, r.limits.MaxPD, "PDs"); err != nil {
		return nil, err
	}
	return &PD{rnic: r, id: r.nextID()}, nil
}

// nextID gives out identities of PDs and QPs; they are never zero.
func (r *RNIC) nextID() uint32 {
	for {
		if id := r.ids.Add(1); id != 0 {
			return id
		}
	}
}

// take reserves one of a capped resource, c of RNIC.used.
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
