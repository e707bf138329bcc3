package cm

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/lru"
)

const (
	minSecret  = 16
	cachedKeys = 4096
)

// A Key is one entry of a Ring. It prints without its secret.
type Key struct {
	ID uint64
	// Secret is at least 16 octets long; 32 random octets are advised.
	Secret []byte
	// Derive makes Secret a master, from which a key is derived for each client: see ClientKey.
	Derive bool
	// Group is part of the identity of peers, instead of the ID, so that the identity survives rotation.
	Group string
	// A responder accepts the key from NotBefore to NotAfter; zero: no limit.
	NotBefore, NotAfter time.Time
	// Primary marks the key that an initiator uses. The initiator ignores NotBefore and NotAfter,
	// because its clock may be wrong.
	Primary bool
}

// Format prints the key without its secret, whatever the verb.
func (k Key) Format(s fmt.State, _ rune) { fmt.Fprint(s, k.text()) }

// LogValue returns the key without its secret, for package slog.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.text()) }

// MarshalText returns the key without its secret, for encoders of structures, as in handlers of package slog.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.text()), nil }

func (k Key) text() string { return fmt.Sprintf("key %d of group %q", k.ID, k.Group) }

func (k *Key) check() error {
	switch {
	case len(k.Secret) < minSecret:
		return fmt.Errorf("cm: key %d: a secret of %d octets, fewer than %d", k.ID, len(k.Secret), minSecret)
	case len(k.Group) > 255:
		return fmt.Errorf("cm: key %d: a group of %d octets, more than 255", k.ID, len(k.Group))
	case !k.NotBefore.IsZero() && !k.NotAfter.IsZero() && k.NotAfter.Before(k.NotBefore):
		return fmt.Errorf("cm: key %d: NotAfter is before NotBefore", k.ID)
	}
	return nil
}

// ClientKey derives the Secret of the client with that ID from the master. The client's Ring holds
// it in a Key without Derive, and the responder's Ring holds the master in a Key with Derive.
func ClientKey(master []byte, keyID uint64, clientID [16]byte) []byte {
	return clientKey(masterKey(master), keyID, clientID)
}

func masterKey(master []byte) []byte { return extract([]byte("iwarp cm master v1"), master) }

func clientKey(masterPRK []byte, keyID uint64, clientID [16]byte) []byte {
	return expand(masterPRK, clientInfo(keyID, clientID), sha256.Size)
}

// A Ring holds keys. They are replaced as a whole; set-ups in progress keep the keys that they
// began with.
type Ring struct{ now atomic.Pointer[ringState] }

// NewRing returns a Ring of these keys, or an error that names a wrong key. It copies the secrets.
func NewRing(keys ...Key) (*Ring, error) {
	r := new(Ring)
	if err := r.Replace(keys...); err != nil {
		return nil, err
	}
	return r, nil
}

// Replace replaces all keys. After an error the Ring is unchanged.
func (r *Ring) Replace(keys ...Key) error {
	s, err := newRingState(keys)
	if err != nil {
		return err
	}
	r.now.Store(s)
	return nil
}

// Format prints the name of the type, and no secret.
func (r *Ring) Format(s fmt.State, _ rune) { fmt.Fprint(s, "cm.Ring") }

// A ringState is the content of a Ring from one Replace to the next.
type ringState struct {
	entries map[uint64]*ringEntry
	primary *ringEntry // nil: none

	// dummy stands for unknown keys: it costs as much as a known key, and no frame verifies
	// under it.
	dummy *ringEntry

	mu     sync.Mutex
	cached *lru.Map[keyUse, *frameKeys]
}

// A ringEntry is a key, with the master key derived from it.
type ringEntry struct {
	Key
	master []byte // of a key with Derive
}

func newRingEntry(k Key) *ringEntry {
	e := &ringEntry{Key: k}
	e.Secret = slices.Clone(k.Secret)
	// Without monotonic readings, which time.Now adds: that clock stands still while the machine sleeps.
	e.NotBefore, e.NotAfter = k.NotBefore.Round(0), k.NotAfter.Round(0)
	if k.Derive {
		e.master = masterKey(e.Secret)
	}
	return e
}

func newRingState(keys []Key) (*ringState, error) {
	if len(keys) == 0 {
		return nil, errors.New("cm: a ring without a key")
	}
	r := &ringState{entries: make(map[uint64]*ringEntry), cached: lru.New[keyUse, *frameKeys](cachedKeys)}
	derive := false
	for _, k := range keys {
		if err := k.check(); err != nil {
			return nil, err
		}
		if r.entries[k.ID] != nil {
			return nil, fmt.Errorf("cm: two keys have the ID %d", k.ID)
		}
		e := newRingEntry(k)
		r.entries[k.ID] = e
		if k.Primary {
			if r.primary != nil {
				return nil, fmt.Errorf("cm: keys %d and %d are both primary", r.primary.ID, k.ID)
			}
			r.primary = e
		}
		derive = derive || k.Derive
	}
	secret := make([]byte, sha256.Size)
	rand.Read(secret)
	r.dummy = newRingEntry(Key{Secret: secret, Derive: derive})
	return r, nil
}

// lookup returns the key with which a Request is verified: the dummy, if the key is unknown or was
// retired longer ago than retain.
func (r *ringState) lookup(id uint64, now time.Time, retain time.Duration) *ringEntry {
	e := r.entries[id]
	if e == nil || !e.NotAfter.IsZero() && now.After(e.NotAfter.Add(retain)) {
		return r.dummy
	}
	return e
}

// checkDates returns an error unless a responder accepts the key now.
func (e *ringEntry) checkDates(now time.Time) error {
	switch {
	case !e.NotBefore.IsZero() && now.Before(e.NotBefore):
		return &Error{Reason: ReasonKeyEarly}
	case !e.NotAfter.IsZero() && now.After(e.NotAfter):
		return &Error{Reason: ReasonKeyRetired}
	}
	return nil
}

// primaryID returns the ID of the primary key; 0: there is none.
func (r *ringState) primaryID() uint64 {
	if r.primary == nil {
		return 0
	}
	return r.primary.ID
}

// kind returns the kind of identity of clients with the key.
func (e *ringEntry) kind() uint8 {
	if e.Derive {
		return KindDerived
	}
	return KindShared
}

// keys derives the keys of a client from the entry, or finds them in the cache. Keys from the
// dummy are cached like all others, so that they take the same time. An ID that has become
// unknown may still have keys of its entry in the cache.
func (r *ringState) keys(e *ringEntry, u keyUse) *frameKeys {
	r.mu.Lock()
	k, ok := r.cached.Get(u)
	r.mu.Unlock()
	if ok && k.entry == e {
		return k
	}
	psk := e.Secret
	if e.Derive {
		psk = clientKey(e.master, u.keyID, u.clientID)
	}
	k = deriveKeys(psk, &u)
	k.entry = e
	r.mu.Lock()
	r.cached.Put(u, k)
	r.mu.Unlock()
	return k
}
