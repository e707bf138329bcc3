package model

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A SubsystemConfig configures a subsystem.
type SubsystemConfig struct {
	NQN string
	// Serial is up to 20 octets of ASCII, and must not change across restarts: hosts refuse a subsystem whose serial
	// number or model changes. "": it is derived from the NQN.
	Serial string
	Model  string // up to 40 octets of ASCII; "": the name of this project
	// Hosts lists the NQNs of the hosts that may connect. An NQN is only a name, and proves nothing. nil: any.
	Hosts []string
}

// A subsystem is a set of namespaces with the controllers through which hosts use it.
type subsystem struct {
	nqn           string
	serial, model string
	discovery     bool
	anyHost       bool
	hosts         map[string]bool
	namespaces    atomic.Pointer[table]
	controllers   []*Controller // ascending by id
	lastID        uint16
	flushing      bool // the engine has a DoFlush
	counters      counters
}

// counters holds the SMART counters.
type counters struct {
	reads, writes, octetsRead, octetsWritten atomic.Uint64
}

// count counts a command that succeeded.
func (c *counters) count(op OpKind, octets uint64) {
	switch op {
	case OpRead, OpCompare:
		c.reads.Add(1)
		c.octetsRead.Add(octets)
	case OpWrite:
		c.writes.Add(1)
		c.octetsWritten.Add(octets)
	default: // not counted
	}
}

func newSubsystem(cfg *SubsystemConfig, firmware string) (*subsystem, error) {
	s := &subsystem{nqn: cfg.NQN, serial: cfg.Serial, model: cfg.Model}
	if s.serial == "" {
		sum := sha256.Sum256([]byte(s.nqn))
		s.serial = hex.EncodeToString(sum[:10])
	}
	if s.model == "" {
		s.model = "goiwarp"
	}
	text := capsule.IdentifyController{SN: s.serial, MN: s.model, FR: firmware, SubNQN: s.nqn}
	if err := text.CheckText(); err != nil {
		return nil, err
	}
	s.namespaces.Store(&table{})
	return s, s.setHosts(cfg.Hosts)
}

func (s *subsystem) setHosts(hosts []string) error {
	allowed := make(map[string]bool, len(hosts))
	for _, h := range hosts {
		if err := capsule.CheckNQN(h); err != nil {
			return err
		}
		allowed[h] = true
	}
	s.anyHost, s.hosts = hosts == nil, allowed
	return nil
}

func (s *subsystem) allows(hostNQN string) bool { return s.anyHost || s.hosts[hostNQN] }

// controller finds a controller.
func (s *subsystem) controller(id uint16) *Controller {
	for _, c := range s.controllers {
		if c.id == id {
			return c
		}
	}
	return nil
}

// nextID returns the first unused CNTLID after the last one that was assigned. There is one, since there are fewer
// controllers than ids.
func (s *subsystem) nextID() uint16 {
	for {
		s.lastID++
		if s.lastID > capsule.MaxCNTLID {
			s.lastID = 1
		}
		if s.controller(s.lastID) == nil {
			return s.lastID
		}
	}
}

// Errors of changes.
var (
	ErrExists   = errors.New("nvme: exists already")
	ErrNotFound = errors.New("nvme: not found")
	ErrLimit    = errors.New("nvme: limit reached")
)

// AddSubsystem adds a subsystem without namespaces.
func (t *Target) AddSubsystem(cfg SubsystemConfig, out []Action) ([]Action, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.subsystem(cfg.NQN) != nil:
		return out, fmt.Errorf("%w: subsystem %q", ErrExists, cfg.NQN)
	case len(t.subsystems)-1 >= t.cfg.Limits.Subsystems:
		return out, fmt.Errorf("%w: %d subsystems", ErrLimit, t.cfg.Limits.Subsystems)
	}
	s, err := newSubsystem(&cfg, t.cfg.Firmware)
	if err != nil {
		return out, err
	}
	t.subsystems = append(t.subsystems, s)
	return t.discoveryChanged(out), nil
}

// SetHosts changes which hosts may connect to a subsystem: nil means any. Controllers of other hosts end.
func (t *Target) SetHosts(nqn string, hosts []string, out []Action) ([]Action, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := t.nvm(nqn)
	if err != nil {
		return out, err
	}
	if err := s.setHosts(hosts); err != nil {
		return out, err
	}
	for _, c := range slices.Clone(s.controllers) {
		if !s.allows(c.hostNQN) {
			out = t.end(c, out)
		}
	}
	return t.discoveryChanged(out), nil
}

// AddNamespace adds a namespace to a subsystem, and tells its hosts. It returns ErrExists if the NSID, or the UUID in
// any subsystem, is in use.
func (t *Target) AddNamespace(nqn string, cfg NamespaceConfig, out []Action) (*Namespace, []Action, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.putNamespace(nqn, cfg, false, out)
}

// ReplaceNamespace replaces the namespace with the same NSID, for example by one of another size, and tells its
// hosts. Commands that have begun keep the old namespace. A smaller size applies only to commands that
// begin later.
func (t *Target) ReplaceNamespace(nqn string, cfg NamespaceConfig, out []Action) (*Namespace, []Action, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.putNamespace(nqn, cfg, true, out)
}

func (t *Target) putNamespace(nqn string, cfg NamespaceConfig, replace bool, out []Action) (*Namespace, []Action, error) {
	s, err := t.nvm(nqn)
	if err != nil {
		return nil, out, err
	}
	n, err := newNamespace(cfg, &t.cfg.Limits, t.cfg.maxTransfer())
	if err != nil {
		return nil, out, err
	}
	old := s.namespaces.Load().get(cfg.NSID)
	switch {
	case replace && old == nil:
		return nil, out, fmt.Errorf("%w: namespace %d of %q", ErrNotFound, cfg.NSID, nqn)
	case !replace && old != nil:
		return nil, out, fmt.Errorf("%w: namespace %d of %q", ErrExists, cfg.NSID, nqn)
	case t.hasUUID(cfg.UUID, old):
		return nil, out, fmt.Errorf("%w: UUID %x", ErrExists, cfg.UUID)
	}
	s.namespaces.Store(s.namespaces.Load().with(cfg.NSID, n))
	return n, t.namespaceChanged(s, cfg.NSID, out), nil
}

// hasUUID reports whether a namespace other than except has a UUID.
func (t *Target) hasUUID(uuid [16]byte, except *Namespace) bool {
	for _, s := range t.subsystems {
		for _, n := range s.namespaces.Load().byID {
			if n != nil && n != except && n.UUID == uuid {
				return true
			}
		}
	}
	return false
}

// RemoveNamespace removes a namespace, and tells the hosts. Commands that have begun still use it.
func (t *Target) RemoveNamespace(nqn string, nsid uint32, out []Action) ([]Action, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := t.nvm(nqn)
	if err != nil {
		return out, err
	}
	if s.namespaces.Load().get(nsid) == nil {
		return out, fmt.Errorf("%w: namespace %d of %q", ErrNotFound, nsid, nqn)
	}
	s.namespaces.Store(s.namespaces.Load().with(nsid, nil))
	return t.namespaceChanged(s, nsid, out), nil
}
