package cm

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"

	"github.com/goiwarp/iwarp"
)

// maxExport is the largest output of HKDF-Expand with SHA-256.
const maxExport = 255 * sha256.Size

// Kinds of identities, by what they are based on.
const (
	// KindShared: the peer holds a key that others may hold. All holders of the key are one identity.
	KindShared = 1
	// KindDerived: the peer holds a key of its own, derived from the master.
	KindDerived = 2
	// 3 is iwarp.PeerCertificate, of peers that this package does not authenticate.

	// KindServer: the peer has accepted the connection as the server of that name.
	KindServer = 4
)

func extract(salt, secret []byte) []byte {
	prk, err := hkdf.Extract(sha256.New, secret, salt)
	if err != nil {
		panic(err) // only for secrets shorter than a Ring allows
	}
	return prk
}

func expand(prk []byte, info string, n int) []byte {
	out, err := hkdf.Expand(sha256.New, prk, info, n)
	if err != nil {
		panic(err) // only for n above maxExport
	}
	return out
}

// clientInfo returns the info of the expansion that derives a client's key from the master.
func clientInfo(keyID uint64, clientID [16]byte) string {
	b := append([]byte("iwarp cm client v1"), 0)
	b = binary.BigEndian.AppendUint64(b, keyID)
	return string(append(b, clientID[:]...))
}

// A keyUse is everything besides the secret that the keys of a client depend on.
type keyUse struct {
	keyID    uint64
	clientID [16]byte
	suite    Suite
	mode     Mode
}

// info returns the info of the expansion that derives the key for frames of one type.
func (u *keyUse) info(frame string) string {
	b := append([]byte("iwarp cm "+frame+" v1"), 0, version, uint8(u.suite), u.mode.flags())
	b = binary.BigEndian.AppendUint64(b, u.keyID)
	return string(append(b, u.clientID[:]...))
}

// frameKeys are the keys of a client for one suite and mode. Its set-ups share them. They do not
// change.
type frameKeys struct {
	entry                   *ringEntry // that they were derived from
	psk                     []byte
	request, reply, refusal macKey
}

// A macKey is a key of HMAC-SHA256. The hash states that are initialised with it are reused.
type macKey struct {
	key    []byte
	states sync.Pool // of hash.Hash
}

// sum returns the HMAC over the parts, one after the other.
func (k *macKey) sum(parts ...[]byte) []byte {
	h, ok := k.states.Get().(hash.Hash)
	if !ok {
		h = hmac.New(sha256.New, k.key)
	}
	for _, p := range parts {
		h.Write(p)
	}
	mac := h.Sum(nil)
	h.Reset()
	k.states.Put(h)
	return mac
}

func deriveKeys(psk []byte, u *keyUse) *frameKeys {
	prk := extract([]byte("iwarp cm v1"), psk)
	return &frameKeys{
		psk:     psk,
		request: macKey{key: expand(prk, u.info("req"), sha256.Size)},
		reply:   macKey{key: expand(prk, u.info("rep"), sha256.Size)},
		refusal: macKey{key: expand(prk, u.info("rej"), sha256.Size)},
	}
}

// sessionSecret derives S. shared is empty except in suite 2.
func sessionSecret(transcript, psk, shared []byte) []byte {
	secret := make([]byte, 0, len(psk)+len(shared))
	secret = append(append(secret, psk...), shared...)
	defer clear(secret)
	return extract(transcript, secret)
}

// firstMessage returns the message that proves that the initiator has seen the Reply.
func firstMessage(session, transcript []byte, s Suite, m Mode) []byte {
	key := expand(session, "iwarp cm fin v1", sha256.Size)
	defer clear(key)
	h := firstHeader(s, m)
	mac := hmac.New(sha256.New, key)
	mac.Write(h)
	mac.Write(transcript)
	return mac.Sum(h)
}

// export derives key material for the protocols above.
func export(session []byte, label string, context []byte, n int) ([]byte, error) {
	if len(label) > 255 {
		return nil, fmt.Errorf("cm: a label of %d octets, at most 255 are possible", len(label))
	}
	if n < 0 || n > maxExport {
		return nil, fmt.Errorf("cm: %d octets to export, at most %d are possible", n, maxExport)
	}
	sum := sha256.Sum256(context)
	b := append([]byte("iwarp cm export v1"), 0, uint8(len(label)))
	b = append(append(b, label...), sum[:]...)
	return expand(session, string(b), n), nil
}

// peerID returns the identity of a peer.
func peerID(kind uint8, group string, name []byte) [32]byte {
	b := append([]byte("iwarp peer v1"), 0, kind, uint8(len(group)))
	return sha256.Sum256(append(append(b, group...), name...))
}

// newPeer describes a peer. A holder of a shared key can use any name, so its identity does not depend on it.
func newPeer(kind uint8, group string, name [16]byte, u *keyUse) iwarp.Peer {
	identity := name
	if kind == KindShared {
		identity = [16]byte{}
	}
	return iwarp.Peer{
		ID: peerID(kind, group, identity[:]), Kind: kind, Group: group, Name: name,
		KeyID: u.keyID, Mode: uint8(u.mode), Suite: uint8(u.suite),
	}
}

// agree returns the X25519 shared secret with the peer. The result for a low-order point is an
// error.
func agree(private *ecdh.PrivateKey, public []byte) ([]byte, error) {
	k, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, &Error{ReasonPublicKey, err}
	}
	shared, err := private.ECDH(k)
	if err != nil {
		return nil, &Error{ReasonPublicKey, errors.New("a point of low order")}
	}
	return shared, nil
}
