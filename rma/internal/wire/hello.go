package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

const (
	// Suite0 has no keys. Package regionkey defines the other suites.
	Suite0 uint8 = 0
	// NoSuite is the chosen suite in the first HELLO, which chooses none.
	NoSuite uint16 = 0xffff
)

// Limits of the values in a HELLO.
const (
	MinMaxOp       = 512
	MaxMaxOp       = 65536
	MinPullTimeout = time.Millisecond
	MaxPullTimeout = 30 * time.Second
	MaxGuard       = 30 * time.Second
	MaxLinger      = 10 * time.Second
)

// ErrNoSuite is the error of two sides that have no suite in common.
var ErrNoSuite = errors.New("rma: no suite in common")

// Offer returns the bit that stands for a suite in Hello.Offered.
func Offer(suite uint8) uint16 { return 1 << suite }

// ChooseSuite returns the suite for two sides that offer these suites. AES-128 comes before AES-256,
// which a side demands by not offering AES-128; suite 0 comes last.
func ChooseSuite(a, b uint16) (uint8, error) {
	for _, s := range []uint8{regionkey.SuiteAES128, regionkey.SuiteAES256, Suite0} {
		if a&b&Offer(s) != 0 {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%w: %#04x and %#04x are offered", ErrNoSuite, a, b)
}

// A Hello is the first message of each side.
type Hello struct {
	Offered     uint16 // suites, see Offer
	Chosen      uint16 // a suite, in the answer; NoSuite in the first one
	MaxOp       uint32 // longest operation, in octets
	Depth       uint16 // requests that the peer may have unanswered
	PullTimeout time.Duration
	Guard       time.Duration
	Linger      time.Duration
	Instance    [16]byte
}

// Append appends the message.
func (m *Hello) Append(dst []byte, h Header, c *regionkey.Control) []byte {
	all, msg := begin(dst, TypeHello, h)
	binary.BigEndian.PutUint16(msg[24:], m.Offered)
	binary.BigEndian.PutUint16(msg[26:], m.Chosen)
	binary.BigEndian.PutUint32(msg[28:], m.MaxOp)
	binary.BigEndian.PutUint16(msg[32:], m.Depth)
	putCount(msg[36:], m.PullTimeout, time.Microsecond)
	putCount(msg[40:], m.Guard+time.Microsecond-1, time.Microsecond) // the client waits no less
	putCount(msg[44:], m.Linger, time.Microsecond)
	copy(msg[48:], m.Instance[:])
	putOuter(msg, c, h.Ctr)
	return all
}

// Parse reads the message.
func (m *Hello) Parse(msg []byte) error {
	if err := is(msg, TypeHello); err != nil {
		return err
	}
	*m = Hello{
		Offered:     binary.BigEndian.Uint16(msg[24:]),
		Chosen:      binary.BigEndian.Uint16(msg[26:]),
		MaxOp:       binary.BigEndian.Uint32(msg[28:]),
		Depth:       binary.BigEndian.Uint16(msg[32:]),
		PullTimeout: count(msg[36:], time.Microsecond),
		Guard:       count(msg[40:], time.Microsecond),
		Linger:      count(msg[44:], time.Microsecond),
		Instance:    [16]byte(msg[48:64]),
	}
	return m.check()
}

func (m *Hello) check() error {
	if m.Chosen != NoSuite && (m.Chosen > 15 || m.Offered&(1<<m.Chosen) == 0) {
		return malformed("a HELLO that chooses suite %d and offers %#04x", m.Chosen, m.Offered)
	}
	if m.MaxOp < MinMaxOp || m.MaxOp > MaxMaxOp {
		return malformed("operations of %d octets, where %d to %d are possible", m.MaxOp, MinMaxOp, MaxMaxOp)
	}
	return cmp.Or(
		inRange("a pull timeout", m.PullTimeout, MinPullTimeout, MaxPullTimeout),
		inRange("a guard", m.Guard, op.MinGuard(m.PullTimeout), MaxGuard),
		inRange("a linger time", m.Linger, 0, MaxLinger),
	)
}

// Suite returns the suite for the sender of m and a side that offers these suites. In an answer, the
// sender must have chosen that suite; in the first HELLO, none.
func (m *Hello) Suite(offered uint16, answer bool) (uint8, error) {
	s, err := ChooseSuite(offered, m.Offered)
	want := NoSuite
	if answer {
		want = uint16(s)
	}
	if err == nil && m.Chosen != want {
		return 0, malformed("suite %d was chosen, where %d is right", m.Chosen, want)
	}
	return s, err
}
