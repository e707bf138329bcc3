package sctpudp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"
)

// A cookie is all that a listener needs to know about a peer that has sent INIT. The peer
// keeps it, and proves its address by sending it back (RFC 9260 section 5.1.3).
type cookie struct {
	made         time.Time
	from         netip.AddrPort
	at           ports // of the packets that arrive
	ours, theirs initiation
}

// cookieLife is how long a cookie is valid.
const cookieLife = time.Minute

const cookieSize = 8 + 18 + 4 + 2*initSize + sha256.Size

// A secret signs cookies. Their times count from when the secret was made, because the time of day may
// step: a cookie could be stale at once, or the cookie of a peer that has restarted could be taken for
// an old one.
type secret struct {
	key  [32]byte
	made time.Time
}

func newSecret() *secret {
	s := &secret{made: time.Now()}
	_, _ = rand.Read(s.key[:]) // never fails
	return s
}

func (s *secret) sign(b []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write(b)
	return h.Sum(b)
}

// bake returns the octets of c.
func (s *secret) bake(c *cookie) []byte {
	b := make([]byte, 0, cookieSize)
	b = binary.BigEndian.AppendUint64(b, uint64(c.made.Sub(s.made)))
	b = appendAddr(b, c.from)
	b = binary.BigEndian.AppendUint16(b, c.at.source)
	b = binary.BigEndian.AppendUint16(b, c.at.destination)
	b = c.ours.appendFixed(b)
	b = c.theirs.appendFixed(b)
	return s.sign(b)
}

func appendAddr(b []byte, a netip.AddrPort) []byte {
	ip := a.Addr().As16()
	return binary.BigEndian.AppendUint16(append(b, ip[:]...), a.Port())
}

// stale reports whether a cookie has expired.
func (c *cookie) stale(now time.Time) bool {
	age := now.Sub(c.made)
	return age < 0 || age > cookieLife
}

// open checks a cookie that came from the given addresses, and reads it.
func (s *secret) open(b []byte, from netip.AddrPort, at ports) (*cookie, bool) {
	if len(b) != cookieSize {
		return nil, false
	}
	body := b[:cookieSize-sha256.Size]
	if !hmac.Equal(s.sign(body[:len(body):len(body)])[len(body):], b[len(body):]) {
		return nil, false
	}
	c := &cookie{made: s.made.Add(time.Duration(binary.BigEndian.Uint64(b))), from: from, at: at}
	where := appendAddr(nil, from)
	where = binary.BigEndian.AppendUint16(where, at.source)
	where = binary.BigEndian.AppendUint16(where, at.destination)
	if string(where) != string(b[8:8+len(where)]) {
		return nil, false
	}
	b = b[8+len(where):]
	var err, err2 error
	c.ours, err = parseInit(b[:initSize])
	c.theirs, err2 = parseInit(b[initSize : 2*initSize])
	return c, err == nil && err2 == nil
}
