package model

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A Target holds all subsystems of a process, including the discovery subsystem, with their controllers and queues.
type Target struct {
	cfg Config

	mu          sync.Mutex   // taken before that of a queue
	subsystems  []*subsystem // the first one is the discovery subsystem
	controllers int
	perHost     map[string]int // controllers, by NQN
	connections int
	perAddress  map[string]int // connections
	waiting     []*Queue       // for a Connect
	genctr      uint64         // of the discovery log
	stopping    bool
}

// New returns a target that has only the discovery subsystem.
func New(cfg Config) (*Target, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	d, err := newSubsystem(&SubsystemConfig{NQN: capsule.DiscoveryNQN}, cfg.Firmware)
	if err != nil {
		return nil, err
	}
	d.discovery = true
	return &Target{
		cfg:        cfg,
		subsystems: []*subsystem{d},
		perHost:    make(map[string]int),
		perAddress: make(map[string]int),
	}, nil
}

// subsystem returns a subsystem by name, nil if there is none.
func (t *Target) subsystem(nqn string) *subsystem {
	for _, s := range t.subsystems {
		if s.nqn == nqn {
			return s
		}
	}
	return nil
}

// nvm returns a subsystem that can be changed.
func (t *Target) nvm(nqn string) (*subsystem, error) {
	s := t.subsystem(nqn)
	if s == nil || s.discovery {
		return nil, fmt.Errorf("%w: subsystem %q", ErrNotFound, nqn)
	}
	return s, nil
}

// Stop refuses new connections and controllers, with statuses after which hosts try again. Existing connections
// continue.
func (t *Target) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopping = true
}

// Volatile returns the namespaces of all subsystems that have to be flushed before the process ends.
func (t *Target) Volatile() []*Namespace {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*Namespace
	for _, s := range t.subsystems {
		all = append(all, s.namespaces.Load().volatile...)
	}
	return all
}

// CloseAll ends all controllers, and closes all queues.
func (t *Target) CloseAll(out []Action) []Action {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.subsystems {
		for len(s.controllers) > 0 {
			out = t.end(s.controllers[0], out)
		}
	}
	for _, q := range slices.Clone(t.waiting) {
		out = t.close(q, out)
	}
	return out
}

// Never is a time that never comes.
const Never = time.Duration(1<<63 - 1)

// Tick does what is due: it ends controllers whose keep alive timer has expired, and closes queues without a
// successful Connect in time. It returns when it must be called again, at the latest.
func (t *Target) Tick(now time.Duration, out []Action) (time.Duration, []Action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := Never
	for _, s := range t.subsystems {
		for _, c := range slices.Clone(s.controllers) {
			at := c.expiry()
			if at <= now {
				c.failed = true
				out = t.end(c, out)
				continue
			}
			next = min(next, at)
		}
	}
	for _, q := range slices.Clone(t.waiting) {
		if q.deadline <= now {
			out = t.close(q, out)
			continue
		}
		next = min(next, q.deadline)
	}
	return next, out
}
