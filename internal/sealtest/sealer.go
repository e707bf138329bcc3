// Package sealtest provides a transport.Sealer for tests.
package sealtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"

	"github.com/goiwarp/iwarp/transport"
)

// The errors of Open.
var (
	ErrForged  = errors.New("sealtest: the frame is not the peer's")
	ErrRefused = errors.New("sealtest: the peer refuses")
)

// The lengths of the octets that are added to the application's private data.
const (
	Overhead  = macSize + 1 // by Wrap, and by Refuse for the application
	RefuseLen = 20          // by Refuse for another cause, which is not authenticated
	macSize   = 31
)

// The last octet of private data says what the data are.
const (
	kindWrapped byte = iota + 1
	kindRejected
	kindRefused
)

// A Sealer appends a MAC to the application's private data. The MAC covers the frame up to there and
// all frames before it. Both sides of a connection need a Sealer with the same Key.
type Sealer struct {
	Key      string
	NoRoom   int   // excess octets that Overhead reports
	FailWrap error // of Wrap and Refuse

	Wrapped, Opened int      // calls
	Starts          [][]byte // of the frames that were wrapped
	Causes          []error  // of Refuse
	Closed          int

	seen []byte // the frames so far
}

var _ transport.Sealer = (*Sealer)(nil)

// Overhead implements transport.Sealer.
func (s *Sealer) Overhead() int { return Overhead + s.NoRoom }

// RefuseLen implements transport.Sealer.
func (s *Sealer) RefuseLen(cause error) int {
	if errors.Is(cause, transport.ErrRejected) {
		return Overhead
	}
	return RefuseLen
}

// Wrap implements transport.Sealer.
func (s *Sealer) Wrap(start, app []byte) ([]byte, error) {
	s.Wrapped++
	return s.wrap(start, app, kindWrapped)
}

// Refuse implements transport.Sealer.
func (s *Sealer) Refuse(start, app []byte, cause error) ([]byte, error) {
	s.Causes = append(s.Causes, cause)
	if errors.Is(cause, transport.ErrRejected) {
		return s.wrap(start, app, kindRejected)
	}
	s.Starts = append(s.Starts, append([]byte(nil), start...))
	return append(append(start, make([]byte, RefuseLen-1)...), kindRefused), s.FailWrap
}

func (s *Sealer) wrap(start, app []byte, kind byte) ([]byte, error) {
	if s.FailWrap != nil {
		return nil, s.FailWrap
	}
	s.Starts = append(s.Starts, append([]byte(nil), start...))
	frame := append(start, app...)
	frame = append(append(frame, s.mac(frame, kind)...), kind)
	s.seen = append(s.seen, frame...)
	return frame, nil
}

func (s *Sealer) mac(frame []byte, kind byte) []byte {
	h := hmac.New(sha256.New, []byte(s.Key))
	h.Write(s.seen)
	h.Write(frame)
	h.Write([]byte{kind})
	return h.Sum(nil)[:macSize]
}

// Open implements transport.Sealer.
func (s *Sealer) Open(frame []byte, off int) ([]byte, error) {
	s.Opened++
	ulp := frame[off:]
	switch {
	case len(ulp) == RefuseLen && ulp[RefuseLen-1] == kindRefused:
		return nil, ErrRefused
	case len(ulp) < Overhead:
		return nil, ErrForged
	}
	end := len(frame) - Overhead
	kind := frame[len(frame)-1]
	if kind != kindWrapped && kind != kindRejected || !hmac.Equal(frame[end:end+macSize], s.mac(frame[:end], kind)) {
		return nil, ErrForged
	}
	s.seen = append(s.seen, frame...)
	return frame[off:end:end], nil
}

// Close counts its calls.
func (s *Sealer) Close() { s.Closed++ }
