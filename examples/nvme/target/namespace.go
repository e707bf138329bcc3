package target

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
)

// A Subsystem is a set of namespaces to which hosts connect by name.
type Subsystem struct {
	NQN string
	// Serial is up to 20 octets of ASCII, and must not change across restarts. "": it is derived from the NQN.
	Serial string
	Model  string // up to 40 octets of ASCII; "": the name of this project
	// Hosts lists the NQNs of the hosts that may connect; nil: any. An NQN is only a name, and proves nothing.
	Hosts []string
}

// A Namespace presents a back end to hosts.
type Namespace struct {
	NSID uint32 // from 1 on
	// Backend belongs to the program, which must close it after the namespace was removed or the target closed. Backend.Close
	// waits for running operations.
	Backend backend.Backend
	// UUID names the namespace permanently; zero: it is derived from the NQN and the NSID. NGUID is optional.
	UUID, NGUID [16]byte
}

// Errors of changes.
var (
	ErrExists   = model.ErrExists
	ErrNotFound = model.ErrNotFound
	ErrLimit    = model.ErrLimit
)

var errNoBackend = errors.New("nvme: a namespace without a back end")

type spaceID struct {
	nqn  string
	nsid uint32
}

// A namespace is the handle that the model keeps for a namespace. Resize changes its back end.
type namespace struct {
	Namespace
	backend atomic.Pointer[backend.Backend]
	workers *workers
}

func (n *namespace) medium() backend.Backend { return *n.backend.Load() }

// use calls f with the back end, and once more if the back end was replaced and closed before f used it.
func (n *namespace) use(f func(backend.Backend) error) error {
	for {
		p := n.backend.Load()
		err := f(*p)
		if !errors.Is(err, backend.ErrClosed) || n.backend.Load() == p {
			return err
		}
	}
}

func (n *namespace) flush(ctx context.Context) error {
	return n.use(func(b backend.Backend) error { return b.Flush(ctx) })
}

// AddSubsystem adds a subsystem without namespaces. It returns ErrExists if there is one with the same name.
func (t *Target) AddSubsystem(s Subsystem) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	err := t.change(func(out []model.Action) ([]model.Action, error) {
		return t.model.AddSubsystem(model.SubsystemConfig{NQN: s.NQN, Serial: s.Serial, Model: s.Model, Hosts: s.Hosts}, out)
	})
	if err != nil {
		return err
	}
	w := newWorkers(maxWorkers)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flushers[s.NQN], t.pools = w, append(t.pools, w)
	return nil
}

// flusher returns the workers that flush namespaces of a controller's subsystem. A medium that hangs does not delay those of other
// subsystems.
func (t *Target) flusher(c *model.Controller) *workers {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flushers[c.SubNQN()]
}

// SetHosts changes which hosts may connect to a subsystem; nil: any. The controllers of other hosts end.
func (t *Target) SetHosts(nqn string, hosts []string) error {
	return t.change(func(out []model.Action) ([]model.Action, error) { return t.model.SetHosts(nqn, hosts, out) })
}

// AddNamespace adds a namespace to a subsystem, and tells its hosts. It returns ErrExists if the NSID, or the UUID in any
// subsystem, is in use.
func (t *Target) AddNamespace(nqn string, ns Namespace) error {
	if ns.Backend == nil {
		return errNoBackend
	}
	if ns.UUID == [16]byte{} {
		ns.UUID = derivedUUID(nqn, ns.NSID)
	}
	n := &namespace{Namespace: ns, workers: newWorkers(t.cfg.Limits.Workers)}
	n.backend.Store(&ns.Backend)
	t.changing.Lock()
	defer t.changing.Unlock()
	err := t.change(func(out []model.Action) ([]model.Action, error) {
		_, out, err := t.model.AddNamespace(nqn, n.config(ns.Backend), out)
		return out, err
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spaces[spaceID{nqn, ns.NSID}] = n
	t.pools = append(slices.DeleteFunc(t.pools, (*workers).ended), n.workers)
	return nil
}

// Resize gives a namespace another back end, of another size, which must have the contents of the old one as far as both
// extend. The NSID and the UUID stay, and hosts are told. Commands that have begun on the old back end finish there: close it
// after Resize has returned. Commands beyond the end of a smaller back end are answered with 0x080.
func (t *Target) Resize(nqn string, nsid uint32, b backend.Backend) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	n := t.space(spaceID{nqn, nsid})
	switch {
	case n == nil:
		return ErrNotFound
	case b == nil:
		return errNoBackend
	}
	return t.change(func(out []model.Action) ([]model.Action, error) {
		_, out, err := t.model.ReplaceNamespace(nqn, n.config(b), out)
		if err == nil {
			n.backend.Store(&b)
		}
		return out, err
	})
}

// RemoveNamespace removes a namespace, and tells the hosts. It does not wait for commands that arrived before: they are
// executed until the back end is closed, whose Close waits for commands that have begun, and answered with 0x006
// afterwards.
func (t *Target) RemoveNamespace(nqn string, nsid uint32) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	err := t.change(func(out []model.Action) ([]model.Action, error) { return t.model.RemoveNamespace(nqn, nsid, out) })
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := spaceID{nqn, nsid}
	if n := t.spaces[id]; n != nil {
		n.workers.finish()
		delete(t.spaces, id)
	}
	return nil
}

func (t *Target) space(id spaceID) *namespace {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spaces[id]
}

// change changes the model, and performs the resulting actions.
func (t *Target) change(f func([]model.Action) ([]model.Action, error)) (err error) {
	acts := t.actions.get()
	acts.list, err = f(acts.list)
	t.perform(nil, acts)
	return err
}

// config returns what the model has to know of a namespace.
func (n *namespace) config(b backend.Backend) model.NamespaceConfig {
	traits := backend.Describe(b)
	return model.NamespaceConfig{
		NSID: n.NSID, UUID: n.UUID, NGUID: n.NGUID,
		Geometry: capsule.Geometry{
			LBADS: uint8(bits.TrailingZeros(uint(b.BlockSize()))), Blocks: uint64(b.Size()) / uint64(b.BlockSize()),
		},
		ReadOnly: b.ReadOnly(), Volatile: b.Volatile(),
		Trims: traits.Trims, TrimmedZeroes: traits.Trims && !traits.KeepsTrimmed,
		Granularity: uint32(traits.Granularity),
		Handle:      n,
	}
}

// derivedUUID returns a UUID that is the same after a restart (RFC 9562, version 8).
func derivedUUID(nqn string, nsid uint32) (id [16]byte) {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint32([]byte(nqn), nsid))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}
