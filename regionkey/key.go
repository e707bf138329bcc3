package regionkey

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
)

// Labels of the derivations. For HKDF-Expand in this package, a zero octet follows the label.
const (
	labelRegion  = "iwarp rma kr v1"
	labelDerived = "iwarp rma kd v1\x00"
	labelTraffic = "iwarp rma kt v1\x00"
	labelBinding = "iwarp rma binding v1"
	labelControl = "iwarp rma ctl v1"
)

// An OpType is a kind of operation. Each has keys of its own.
type OpType uint8

// The kinds of operations.
const (
	Read OpType = 1 + iota
	Write
	Manage // Rekey
)

func (t OpType) String() string {
	switch t {
	case Read:
		return "read"
	case Write:
		return "write"
	case Manage:
		return "manage"
	default:
		return fmt.Sprintf("operation %d", uint8(t))
	}
}

// A Key is a secret of 32 octets that a client needs for one kind of operation on one region. It
// prints without the octets.
type Key [32]byte

// Format prints the name of the type, whatever the verb.
func (Key) Format(s fmt.State, _ rune) { fmt.Fprint(s, "regionkey.Key") }

// LogValue returns the name of the type, for package slog.
func (Key) LogValue() slog.Value { return slog.StringValue("regionkey.Key") }

// MarshalText returns the name of the type, for encoders of structures, as in handlers of package slog.
func (Key) MarshalText() ([]byte, error) { return []byte("regionkey.Key"), nil }

// Wipe overwrites the Key.
func (k *Key) Wipe() { clear(k[:]) }

// take makes a Key from derived octets, which it overwrites.
func take(b []byte) (k Key) {
	copy(k[:], b)
	clear(b)
	return k
}

// extract derives a key from the secret of a region.
func extract(secret []byte) Key {
	b, err := hkdf.Extract(sha256.New, secret, []byte(labelRegion))
	if err != nil {
		panic(err) // only for secrets shorter than a Ring allows
	}
	return take(b)
}

// expand derives n octets, at most 32, from a key.
func expand(from *Key, info []byte, n int) []byte {
	b, err := hkdf.Expand(sha256.New, from[:], string(info), n)
	if err != nil {
		panic(err) // only for more octets than any caller requests
	}
	return b
}

// derivedInfo returns everything besides the region's key that a client's key depends on.
func derivedInfo(region uint64, e Epoch, peer [32]byte, instance [16]byte, op OpType) []byte {
	b := append(make([]byte, 0, 96), labelDerived...)
	b = binary.BigEndian.AppendUint64(b, region)
	b = binary.BigEndian.AppendUint32(b, uint32(e))
	b = append(append(b, peer[:]...), instance[:]...)
	return append(b, uint8(op))
}
