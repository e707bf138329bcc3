package regionkey

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"
)

// Sizes of the secret of a region, in octets.
const (
	MinSecret = 16
	MaxSecret = 64
)

// DefaultMaxGrace is the longest grace of a Ring that sets no other.
const DefaultMaxGrace = time.Minute

var (
	// ErrStale is the error of an epoch whose key is not valid any more, or never was.
	ErrStale = errors.New("regionkey: the epoch is not good")
	// ErrEpoch is the error of a Rekey to an epoch that is not the next one.
	ErrEpoch = errors.New("regionkey: not the next epoch")
	// ErrClosed is the error of a Ring that was closed.
	ErrClosed = errors.New("regionkey: the ring is closed")
)

// An Epoch is the number of a region's key. The first is 1, and each new key has the next number.
type Epoch uint32

// next returns the epoch that follows. None follows the last one, because epochs are never used
// again.
func (e Epoch) next() (Epoch, error) {
	if e == math.MaxUint32 {
		return 0, fmt.Errorf("%w: %d is the last one", ErrEpoch, e)
	}
	return e + 1, nil
}

// A Ring holds the keys of one region: the current key, and the previous one until its grace ends.
// It prints without them.
type Ring struct {
	// MaxGrace is the longest grace; 0: DefaultMaxGrace.
	MaxGrace time.Duration

	region   uint64
	current  epochKey
	previous epochKey  // until its grace ends; epoch 0: there is none
	graceEnd time.Time // of previous; zero: there is none
	closed   bool
}

// An epochKey is the key from which the keys of clients are derived.
type epochKey struct {
	epoch Epoch
	prk   Key
}

// NewRing returns the Ring of the region with that ID, in epoch 1. The secret is MinSecret to
// MaxSecret octets long and is not retained; nil: 32 random octets.
func NewRing(id uint64, secret []byte) (*Ring, error) {
	k, err := newEpochKey(1, secret)
	if err != nil {
		return nil, err
	}
	return &Ring{region: id, current: k}, nil
}

func newEpochKey(e Epoch, secret []byte) (epochKey, error) {
	if secret == nil {
		secret = make([]byte, 32)
		rand.Read(secret)
		defer clear(secret)
	}
	if n := len(secret); n < MinSecret || n > MaxSecret {
		return epochKey{}, fmt.Errorf("regionkey: a secret of %d octets, where %d to %d are possible", n, MinSecret, MaxSecret)
	}
	return epochKey{epoch: e, prk: extract(secret)}, nil
}

// Format prints the region and the current epoch, whatever the verb.
func (r Ring) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "regionkey.Ring of region %d, epoch %d", r.region, r.current.epoch)
}

// Current returns the current epoch.
func (r *Ring) Current() Epoch { return r.current.epoch }

// Rekey begins the next epoch, with a secret as for NewRing. The previous epoch stays valid for the
// grace (0: no longer). An epoch that still has a grace from an earlier Rekey becomes invalid.
// After an error the Ring is unchanged.
func (r *Ring) Rekey(now time.Time, secret []byte, grace time.Duration) (Epoch, error) {
	next, err := r.current.epoch.next()
	if err != nil {
		return 0, err
	}
	if err := r.RekeyTo(now, next, secret, grace); err != nil {
		return 0, err
	}
	return next, nil
}

// RekeyTo is like Rekey, but the caller specifies the epoch. If to is not the next epoch, the error
// matches ErrEpoch.
func (r *Ring) RekeyTo(now time.Time, to Epoch, secret []byte, grace time.Duration) error {
	next, err := r.current.epoch.next()
	switch {
	case r.closed:
		return ErrClosed
	case err != nil:
		return err
	case to != next:
		return fmt.Errorf("%w: %d behind %d", ErrEpoch, to, r.current.epoch)
	case grace < 0 || grace > r.maxGrace():
		return fmt.Errorf("regionkey: a grace of %v, where 0 to %v are possible", grace, r.maxGrace())
	}
	k, err := newEpochKey(next, secret)
	if err != nil {
		return err
	}
	r.endGrace()
	if grace > 0 {
		r.previous, r.graceEnd = r.current, now.Add(grace)
	}
	r.current = k
	k.prk.Wipe()
	return nil
}

// endGrace overwrites the key of the previous epoch.
func (r *Ring) endGrace() { r.previous, r.graceEnd = epochKey{}, time.Time{} }

func (r *Ring) maxGrace() time.Duration {
	if r.MaxGrace == 0 {
		return DefaultMaxGrace
	}
	return r.MaxGrace
}

// Expire ends a grace that is over, and returns the oldest valid epoch. Keys derived for older
// epochs may be dropped.
func (r *Ring) Expire(now time.Time) Epoch {
	if !now.Before(r.graceEnd) {
		r.endGrace() // for good, even if the clock goes back
		return r.current.epoch
	}
	return r.previous.epoch
}

// Derive derives the key of one client for one kind of operation. peer is the client's authenticated
// identity, and instance a number that the client has chosen. The error matches ErrStale if the epoch
// is not valid.
func (r *Ring) Derive(now time.Time, e Epoch, peer [32]byte, instance [16]byte, op OpType) (Key, error) {
	oldest := r.Expire(now)
	switch {
	case r.closed:
		return Key{}, ErrClosed
	case e == r.current.epoch:
		return r.derive(&r.current, peer, instance, op)
	case e == r.previous.epoch && e >= oldest:
		return r.derive(&r.previous, peer, instance, op)
	}
	return Key{}, fmt.Errorf("%w: %d in place of %d", ErrStale, e, r.current.epoch)
}

func (r *Ring) derive(from *epochKey, peer [32]byte, instance [16]byte, op OpType) (Key, error) {
	if op < Read || op > Manage {
		return Key{}, fmt.Errorf("regionkey: no keys for %v", op)
	}
	return take(expand(&from.prk, derivedInfo(r.region, from.epoch, peer, instance, op), len(Key{}))), nil
}

// Close overwrites the keys. No key can be derived afterwards.
func (r *Ring) Close() {
	r.closed = true
	r.current.prk.Wipe()
	r.endGrace()
}
