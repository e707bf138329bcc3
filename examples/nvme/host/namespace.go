package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A Namespace is a namespace of a subsystem: a range of LBAs. It stays valid across connections. Its
// methods may be called by any goroutine.
type Namespace struct {
	c     *Controller
	nsid  uint32
	state atomic.Pointer[nsState]
}

// An nsState is what is known of a namespace. It is replaced as a whole.
type nsState struct {
	description
	err error // why it cannot be used
}

// NSID returns the number of the namespace.
func (n *Namespace) NSID() uint32 { return n.nsid }

// BlockSize returns the length of an LBA in octets: offsets and lengths are multiples of it.
func (n *Namespace) BlockSize() int { return n.state.Load().geometry.BlockSize() }

// Size returns the size in octets. It changes when the target reports another size.
func (n *Namespace) Size() int64 { return n.state.Load().geometry.Size() }

// ReadOnly reports whether the target refuses writes.
func (n *Namespace) ReadOnly() bool { return n.state.Load().readOnly }

// TrimmedReadsZero reports whether LBAs read as zero after Trim.
func (n *Namespace) TrimmedReadsZero() bool { return n.state.Load().zeroes }

// UUID returns an identifier of the namespace that is unique everywhere, like NGUID and EUI64; zeros: there is none.
func (n *Namespace) UUID() [16]byte { return n.state.Load().identity.uuid }

// NGUID is like UUID.
func (n *Namespace) NGUID() [16]byte { return n.state.Load().identity.nguid }

// EUI64 is like UUID.
func (n *Namespace) EUI64() [8]byte { return n.state.Load().identity.eui64 }

// Err returns why the namespace cannot be used now: [ErrReplaced], which is final, [capsule.ErrInactive], or what
// is wrong with the target's description of it. It may also be a [capsule.StatusError] with which the target
// refuses to describe the namespace; if the status is temporary, the host asks again every 2 s.
func (n *Namespace) Err() error { return n.state.Load().err }

// Namespaces returns the active namespaces, in the order of their NSIDs. A namespace that was returned
// before is the same *Namespace. A namespace that this host cannot use is omitted; the error names it,
// and the others are still returned.
func (c *Controller) Namespaces(ctx context.Context) ([]*Namespace, error) {
	a, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	ids, err := a.namespaceIDs(ctx)
	if err != nil {
		if errors.Is(err, capsule.ErrMalformed) {
			a.fail(err)
		}
		return nil, err
	}
	var namespaces []*Namespace
	var unusable []error
	for _, nsid := range ids {
		switch n, err := c.look(ctx, a, nsid); {
		case err == nil:
			namespaces = append(namespaces, n)
		case !isAbout(err):
			return nil, err
		case !errors.Is(err, capsule.ErrInactive):
			unusable = append(unusable, fmt.Errorf("nvme: namespace %d: %w", nsid, err))
		}
	}
	return namespaces, errors.Join(unusable...)
}

// look describes a namespace and stores the result. Calls take turns, so that an older description
// does not replace a newer one.
func (c *Controller) look(ctx context.Context, a *assoc, nsid uint32) (*Namespace, error) {
	select {
	case c.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.looking }()
	d, err := a.describe(ctx, nsid)
	if err != nil && !isAbout(err) {
		return nil, err
	}
	return c.update(nsid, d, err), err
}

// isAbout reports whether an error of describe concerns the namespace, and not the connection.
func isAbout(err error) bool {
	return errors.Is(err, capsule.ErrInactive) || errors.Is(err, capsule.ErrMalformed) || errors.As(err, new(capsule.StatusError))
}

// refresh describes the namespaces that the program has again: those in ids, or all.
func (c *Controller) refresh(ctx context.Context, a *assoc, ids []uint32, all bool) error {
	for _, nsid := range c.known() {
		if !all && !slices.Contains(ids, nsid) {
			continue
		}
		if _, err := c.look(ctx, a, nsid); err != nil && !isAbout(err) {
			return err
		}
	}
	return nil
}

// lookAgain is the time between two attempts to describe namespaces that the target refuses to describe.
const lookAgain = 2 * time.Second

// revive tries again to describe the namespaces that the target has refused to describe, until the association has failed: no event
// reports that the target would describe them now.
func (c *Controller) revive(a *assoc) {
	for {
		select {
		case <-c.refused:
		case <-a.down:
			return
		}
		select {
		case <-time.After(lookAgain):
		case <-a.down:
			return
		}
		_ = c.refresh(c.ctx, a, c.undescribed(), false) // an error comes from the association, or from Close
	}
}

// undescribed returns the NSIDs of the namespaces that the target has refused to describe, with a temporary status.
func (c *Controller) undescribed() (ids []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for nsid, n := range c.namespaces {
		if mayPass(n.Err()) {
			ids = append(ids, nsid)
		}
	}
	return ids
}

func mayPass(err error) bool {
	var refused capsule.StatusError
	return errors.As(err, &refused) && passes(refused.Status)
}

// known returns the NSIDs of the namespaces that the program has.
func (c *Controller) known() []uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.namespaces))
}

// update stores what is now known of a namespace. If another namespace has its NSID, the old Namespace
// can no longer be used, and there is a new one.
func (c *Controller) update(nsid uint32, d description, err error) *Namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespaces[nsid]
	if n != nil {
		old := n.state.Load()
		if err != nil {
			n.state.Store(&nsState{description: old.description, err: err})
			if mayPass(err) {
				select {
				case c.refused <- struct{}{}:
				default:
				}
			}
			return n
		}
		if old.identity == d.identity && old.geometry.LBADS == d.geometry.LBADS {
			n.state.Store(&nsState{description: d})
			return n
		}
		n.state.Store(&nsState{description: old.description, err: ErrReplaced})
		delete(c.namespaces, nsid)
	}
	if err != nil {
		return nil
	}
	n = &Namespace{c: c, nsid: nsid}
	n.state.Store(&nsState{description: d})
	c.namespaces[nsid] = n
	return n
}
