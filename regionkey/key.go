package regionkey

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
)

// Labels of the derivations. What is derived with HKDF-Expand has a zero octet behind its label.
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

// A Key is a secret of 32 octets: what a client needs for one kind of operation on one region.
// It prints without them.
type Key [32]byte

// Format prints that it is a Key, whatever the verb.
func (Key) Format(s fmt.State, _ rune) { fmt.Fprint(s, "regionkey.Key") }

// LogValue is for package slog.
func (Key) LogValue() slog.Value { return slog.StringValue("regionkey.Key") }

// MarshalText is for what writes structures out, as the handlers of package slog do.
func (Key) MarshalText() ([]byte, error) { return []byte("regionkey.Key"), nil }

// Wipe overwrites the Key.
func (k *Key) Wipe() { clear(k[:]) }

// take makes a Key of octets that were derived, which it overwrites.
func take(b []byte) (k Key) {
	copy(k[:], b)
	clear(b)
	return k
}

// extract makes a key of the secret of a region.
func extract(secret []byte) Key {
	b, err := hkdf.Extract(sha256.New, secret, []byte(labelRegion))
	if err != nil {
		panic(err) // only for secrets shorter than those of a Ring
	}
	return take(b)
}

// expand derives n octets from a key, which are at most 32.
func expand(from *Key, info []byte, n int) []byte {
	b, err := hkdf.Expand(sha256.New, from[:], string(info), n)
	if err != nil {
		panic(err) // only for more octets than are ever wanted
	}
	return b
}

// derivedInfo is all that a client's key depends on besides the key of the region.
func derivedInfo(region uint64, e Epoch, peer [32]byte, instance [16]byte, op OpType) []byte {
	b := append(make([]byte, 0, 96), labelDerived...)
	b = binary.BigEndian.AppendUint64(b, region)
	b = binary.BigEndian.AppendUint32(b, uint32(e))
	b = append(append(b, peer[:]...), instance[:]...)
	return append(b, uint8(op))
}
