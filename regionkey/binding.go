package regionkey

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
)

// The sides of a connection. In a [Binding], Owner is the side that owns the region, and Dir the
// side that sends.
const (
	Initiator uint8 = 1 // the side that sent the Request of MPA
	Responder uint8 = 2
)

// The suites that have keys.
const (
	SuiteAES128 uint8 = 1 // AES-128-GCM
	SuiteAES256 uint8 = 2 // AES-256-GCM
)

// ErrNoSecret is the error of a connection from which no key can be derived.
var ErrNoSecret = errors.New("regionkey: the connection has no secret of its own")

// An Exporter derives key material that only the two sides of an authenticated connection have,
// like QP.Export.
type Exporter func(label string, context []byte, n int) ([]byte, error)

// export derives a key. A nil Exporter stands for a connection without authentication.
func (x Exporter) export(label string, context []byte) (k Key, err error) {
	if x == nil {
		return k, ErrNoSecret
	}
	b, err := x(label, context, len(k))
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrNoSecret, err)
	}
	if k = take(b); len(b) < len(k) {
		return Key{}, fmt.Errorf("%w: %d octets in place of %d", ErrNoSecret, len(b), len(k))
	}
	return k, nil
}

// BindingSecret returns the secret that binds keys to a connection: [Binding].Secret. It fails
// without an authenticated set-up.
func BindingSecret(x Exporter) (Key, error) { return x.export(labelBinding, nil) }

// A Binding is everything besides the client's key that a traffic key depends on. It prints
// without its secret.
type Binding struct {
	Secret     Key // of the connection: see BindingSecret
	Owner, Dir uint8
	Suite      uint8
}

// Format prints the Binding without its secret, whatever the verb.
func (b Binding) Format(s fmt.State, _ rune) { fmt.Fprint(s, b.text()) }

// LogValue returns the Binding without its secret, for package slog.
func (b Binding) LogValue() slog.Value { return slog.StringValue(b.text()) }

func (b *Binding) text() string {
	return fmt.Sprintf("regionkey.Binding of owner %d, direction %d, suite %d", b.Owner, b.Dir, b.Suite)
}

// keySize returns the key length of the suite.
func (b *Binding) keySize() (int, error) {
	if !isSide(b.Owner) || !isSide(b.Dir) {
		return 0, fmt.Errorf("regionkey: owner %d and direction %d, which are Initiator or Responder", b.Owner, b.Dir)
	}
	switch b.Suite {
	case SuiteAES128:
		return 16, nil
	case SuiteAES256:
		return 32, nil
	default:
		return 0, fmt.Errorf("regionkey: no keys for suite %d", b.Suite)
	}
}

func isSide(s uint8) bool { return s == Initiator || s == Responder }

// trafficKey derives the key of a Sealer.
func (b *Binding) trafficKey(client *Key) ([]byte, error) {
	n, err := b.keySize()
	if err != nil {
		return nil, err
	}
	info := append(make([]byte, 0, 64), labelTraffic...)
	info = append(append(info, b.Secret[:]...), b.Owner, b.Dir, b.Suite)
	defer clear(info)
	return expand(client, info, n), nil
}

// Traffic derives the Sealer of one direction of a connection from the client's key. Both sides
// call it.
func Traffic(client *Key, b *Binding) (*Sealer, error) {
	key, err := b.trafficKey(client)
	if err != nil {
		return nil, err
	}
	a, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return &Sealer{a}, nil
}

// NewControl returns the Control that seals the messages of one side of a connection.
func NewControl(x Exporter, dir uint8) (*Control, error) {
	if !isSide(dir) {
		return nil, fmt.Errorf("regionkey: direction %d, which is Initiator or Responder", dir)
	}
	key, err := x.export(labelControl, []byte{dir})
	if err != nil {
		return nil, err
	}
	a, err := newAEAD(key[:])
	if err != nil {
		return nil, err
	}
	return &Control{a}, nil
}

// newAEAD returns AES-GCM with the key, which it overwrites.
func newAEAD(key []byte) (cipher.AEAD, error) {
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("regionkey: %w", err)
	}
	a, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("regionkey: %w", err)
	}
	return a, nil
}
