package rma

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// RegionOptions are the optional parameters of a Region. A nil *RegionOptions means the defaults.
type RegionOptions struct {
	// Key is the secret from which the keys of clients are derived: 16 to 64 octets. It never leaves
	// the server; nil: 32 random octets.
	Key []byte
	// Ops are the rights that clients can obtain; 0: MayRead and MayWrite.
	Ops Ops
	// MaxGrace is the longest grace of a Rekey; 0: a minute.
	MaxGrace time.Duration
}

// A Region is memory of a server that clients can read and write if they hold its keys.
type Region struct {
	server *Server
	id     uint64
	serial uint64 // names its keys in the cache: another region may get the same ID later
	buf    iwarp.Buffer
	size   uint64
	ops    Ops

	mu     sync.Mutex // a leaf
	ring   *regionkey.Ring
	closed bool
	using  int           // operations that access buf
	idle   chan struct{} // closed when the region is closed and using is 0
}

func newRegion(s *Server, id uint64, b iwarp.Buffer, opt *RegionOptions) (*Region, error) {
	if opt == nil {
		opt = &RegionOptions{}
	}
	size := b.Size()
	switch {
	case size < 0:
		return nil, errors.New("rma: the size of the Buffer is negative")
	case opt.Ops&^allOps != 0:
		return nil, errors.New("rma: RegionOptions.Ops has rights that do not exist")
	case opt.MaxGrace < 0:
		return nil, errors.New("rma: RegionOptions.MaxGrace is negative")
	}
	ring, err := regionkey.NewRing(id, opt.Key)
	if err != nil {
		return nil, err
	}
	ring.MaxGrace = opt.MaxGrace
	r := &Region{server: s, id: id, buf: b, size: uint64(size), ops: opt.Ops, ring: ring, idle: make(chan struct{})}
	r.ops = cmp.Or(r.ops, MayRead|MayWrite)
	return r, nil
}

// ID returns the number by which clients open the region.
func (r *Region) ID() uint64 { return r.id }

// Size returns the size of the region in octets.
func (r *Region) Size() uint64 { return r.size }

// Epoch returns the number of the current key.
func (r *Region) Epoch() regionkey.Epoch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ring.Current()
}

// Rekey begins the next epoch, with a secret as in RegionOptions, and returns its number. Keys of the
// previous epoch stay valid for the grace (0: no longer), but at most until the next Rekey; a grace above
// MaxGrace is refused. After that, operations on this region, and on no other, fail with ErrRemoteAuth and
// StaleEpoch until their clients have opened it again. Rekey does not block, and revokes keys even if the
// context has ended.
func (r *Region) Rekey(_ context.Context, key []byte, grace time.Duration) (regionkey.Epoch, error) {
	now := time.Now()
	r.mu.Lock()
	epoch, err := r.ring.Rekey(now, key, grace)
	oldest := r.ring.Expire(now)
	r.mu.Unlock()
	if err != nil {
		return 0, closedRing(err)
	}
	r.rekeyed(now, oldest, thisSide, AuditEvent{Epoch: epoch})
	return epoch, nil
}

// rekeyTo performs a Rekey that a client has requested.
func (r *Region) rekeyTo(now time.Time, to regionkey.Epoch, key []byte, grace time.Duration, e AuditEvent) error {
	r.mu.Lock()
	err := r.ring.RekeyTo(now, to, key, min(grace, r.maxGrace()))
	oldest := r.ring.Expire(now)
	r.mu.Unlock()
	if err == nil {
		e.Epoch = to
		r.rekeyed(now, oldest, byPeer(&e.Peer), e)
	}
	return err
}

func (r *Region) maxGrace() time.Duration {
	if r.ring.MaxGrace == 0 {
		return regionkey.DefaultMaxGrace
	}
	return r.ring.MaxGrace
}

// rekeyed drops the cached keys of epochs that are over, and records the new epoch.
func (r *Region) rekeyed(now time.Time, oldest regionkey.Epoch, by author, e AuditEvent) {
	r.server.dropBefore(r.serial, oldest)
	e.Time, e.Op, e.Region, e.Granted = now, Rekey, r.id, true
	if r.server.audit.keep(by, &e) {
		r.server.audit.log(&e)
	}
}

func closedRing(err error) error {
	if errors.Is(err, regionkey.ErrClosed) {
		return errNoRegion
	}
	return err
}

// Close removes the region. Later operations fail like operations on a region that never existed. Close
// waits for operations that access the Buffer, so methods of the Buffer must not call it. When it returns,
// nothing accesses the Buffer.
func (r *Region) Close() error {
	r.server.remove(r)
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		r.ring.Close()
		if r.using == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	<-r.idle
	r.server.dropRegion(r.serial)
	return nil
}

// begin lets an operation access the Buffer until end.
func (r *Region) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.using++
	return true
}

func (r *Region) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.using--
	if r.closed && r.using == 0 {
		close(r.idle)
	}
}

// epochs returns the oldest epoch whose keys are valid, and the current one. open reports whether the region is open.
func (r *Region) epochs(now time.Time) (oldest, current regionkey.Epoch, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ring.Expire(now), r.ring.Current(), !r.closed
}

// grant puts the current epoch into an OPEN_REP and, if the connection has keys, the client's keys for the operations that
// the message grants. It reports false if the region is closed.
func (r *Region) grant(now time.Time, holder *client, keys bool, to *wire.OpenRep) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	to.Epoch = r.ring.Current()
	for t := regionkey.Read; t <= regionkey.Manage && keys; t++ {
		if to.Ops&wire.OpsOf(t) == 0 {
			continue
		}
		k, err := r.ring.Derive(now, to.Epoch, holder.peer.ID, holder.instance, t)
		if err != nil {
			return false
		}
		*to.Key(t) = k
	}
	return !r.closed
}

// derive derives the key of a client. It reports false if the epoch is not valid.
func (r *Region) derive(now time.Time, e regionkey.Epoch, holder *client, t regionkey.OpType) (regionkey.Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := r.ring.Derive(now, e, holder.peer.ID, holder.instance, t)
	return k, err == nil
}
