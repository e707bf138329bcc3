package cm

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/goiwarp/iwarp"
)

// defaultMaxPrivate is the room for private data if the AuthInfo does not specify it. Linux's siw
// accepts 252 octets.
const defaultMaxPrivate = 248

// A state is how far a set-up has come.
type state int

const (
	stateNew        state = iota
	stateRequested        // the Request has been sent or verified, or accepted without authentication
	stateQuarantine       // responder, mode B: the Reply was sent, the first message has not come
	stateReady
	stateFailed
	stateClosed
)

// A session is the state that both sides of a set-up have in common.
type session struct {
	auth       *Auth
	id         uint32
	maxPrivate int

	mu         sync.Mutex // of all below
	state      state
	use        keyUse
	ring       *ringState       // as it was at the beginning
	keys       *frameKeys       // nil: the peer is not authenticated, but allowed
	private    *ecdh.PrivateKey // suite 2
	transcript hash.Hash        // of the frames
	request    []byte           // SHA-256 of the Request frame
	peer       iwarp.Peer
	secret     []byte // S; nil: the peer is not authenticated, but allowed
	first      []byte // the first message, mode B
}

// fits returns an error unless the application's data fit beside the block.
func (s *session) fits(overhead, n int) error {
	if left := s.maxPrivate - overhead; n > left {
		return fmt.Errorf("cm: %d octets of private data, where %d of %d are left for the application", n, max(left, 0), s.maxPrivate)
	}
	return nil
}

func (a *Auth) nonce() (n [16]byte, err error) {
	if _, err = io.ReadFull(a.cfg.Rand, n[:]); err != nil {
		return n, fmt.Errorf("cm: no random octets: %w", err)
	}
	return n, nil
}

// ephemeral draws a private key of X25519.
func (a *Auth) ephemeral() (*ecdh.PrivateKey, error) {
	seed := make([]byte, publicSize)
	defer clear(seed)
	if _, err := io.ReadFull(a.cfg.Rand, seed); err != nil {
		return nil, fmt.Errorf("cm: no random octets: %w", err)
	}
	return ecdh.X25519().NewPrivateKey(seed)
}

// public returns the public key to send; it is empty in suite 1.
func (s *session) public() []byte {
	if s.private == nil {
		return nil
	}
	return s.private.PublicKey().Bytes()
}

// now returns the time to send; in mode B, which has none, it is 0.
func (s *session) now() uint64 {
	if s.use.mode == ModeB {
		return 0
	}
	return uint64(s.auth.cfg.Now().UnixNano())
}

// began adds the Request frame to the transcript.
func (s *session) began(frame []byte) {
	s.transcript = sha256.New()
	s.transcript.Write(frame)
	s.request = s.transcript.Sum(nil)
}

// agreed adds the Reply frame to the transcript, and derives the keys that depend on it.
func (s *session) agreed(frame, shared []byte) {
	s.transcript.Write(frame)
	transcript := s.transcript.Sum(nil)
	s.secret = sessionSecret(transcript, s.keys.psk, shared)
	if s.use.mode == ModeB {
		s.first = firstMessage(s.secret, transcript, s.use.suite, s.use.mode)
	}
	s.private, s.transcript = nil, nil
}

// settle ends a set-up. It drops what nothing else needs: a ring that was replaced must not stay in
// memory as long as its connections.
func (s *session) settle() {
	s.state = stateReady
	s.ring, s.keys, s.request = nil, nil, nil
}

// replyMAC returns the MAC of an accepting or, with the other key, of a refusing Reply frame: over
// the octets before and after it.
func (s *session) replyMAC(key *macKey, frame, rest []byte) []byte {
	return key.sum(s.request, frame, rest)
}

// Peer returns the peer that has proved its identity. For a responder it is the peer whose Request
// was verified; in mode B that may be a replay until the first message has come.
func (s *session) Peer() iwarp.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peer
}

// Export derives key material that both sides share.
func (s *session) Export(label string, context []byte, n int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != stateReady {
		return nil, errNotReady
	}
	if s.secret == nil {
		return nil, fmt.Errorf("%w: the peer is not authenticated", iwarp.ErrUnsupported)
	}
	return export(s.secret, label, context, n)
}

// wipe clears the secrets.
func (s *session) wipe() {
	clear(s.secret)
	clear(s.first)
	s.secret, s.first, s.private, s.transcript = nil, nil, nil, nil
	s.ring, s.keys, s.request = nil, nil, nil
	s.state = stateClosed
}

// sameMAC compares in constant time.
func sameMAC(a, b []byte) bool { return hmac.Equal(a, b) }
