package rsocket

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A Config says how a Conn is made. The zero value, like a nil *Config, means the defaults.
type Config struct {
	// ReadBuffer and WriteBuffer are the octets of memory for each direction, from 4 KiB to 1 GiB:
	// 256 KiB each. The peer writes into one half of ReadBuffer while the program reads the other.
	ReadBuffer, WriteBuffer int
	// MaxReadBuffer is to how many octets ReadBuffer grows, up to 1 GiB, while the peer has to wait for
	// room and the program, because of that, for octets: 4 MiB, or ReadBuffer if that is more. It does not grow
	// while the program reads more slowly than the peer sends.
	MaxReadBuffer int
	// Credits is how many messages the peer may send that the program has not read, from 16 to
	// 65,534: 384. One message has the octets of one Write of the peer, or some of them. There are at most 64 less than
	// Limits.MaxQueueDepth of the RNIC.
	Credits int
	// IOMap is how many pieces of memory the peer may name for WriteMapped, from 0 to 32,512; above 128 it is rounded up to a
	// multiple of 256. 0: none.
	IOMap int
	// LenientEOF makes Read return io.EOF, in place of io.ErrUnexpectedEOF, where the peer has ended
	// the connection without having said so. A program that exits without rclose does that.
	LenientEOF bool
	// QP configures the queue pair: timeouts, MPA, TLS and Auth of Dial, and so on. Its PD, CQs, SRQ,
	// depths and PrivateData are those of this package, and must not be set. Connections that are accepted
	// do not use its TLS and Auth. Its MPA.RTR cannot have RTRSend, which is an empty message that the protocol does not
	// have: an initiator with no other is not accepted.
	QP iwarp.QPConfig
	// Listen configures the listener of Listen: TLS, Auth, and the limits for connections in set-up.
	Listen iwarp.ListenConfig
	// Refused, if not nil, is told of each connection request that a Listener has not made a connection of, and why: the
	// initiator does not use rsockets, or the RNIC has no room left, for example. Accept returns nothing for it. The goroutine of
	// that request calls it. Peers that are not authenticated can be the cause, so bound what is logged.
	Refused func(remote net.Addr, cause error)
}

const (
	defaultBuffer  = 256 << 10
	defaultMax     = 4 << 20
	minBuffer      = 4 << 10
	maxBuffer      = 1 << 30
	defaultCredits = 384
	minCredits     = 16
	maxCredits     = 65534
)

// withDefaults returns the configuration with all fields set.
func (c *Config) withDefaults() (Config, error) {
	var all Config
	if c != nil {
		all = *c
	}
	all.ReadBuffer = cmp.Or(all.ReadBuffer, defaultBuffer)
	all.WriteBuffer = cmp.Or(all.WriteBuffer, defaultBuffer)
	all.Credits = cmp.Or(all.Credits, defaultCredits)
	all.MaxReadBuffer = cmp.Or(all.MaxReadBuffer, max(defaultMax, all.ReadBuffer))
	return all, all.check()
}

func (c *Config) check() error {
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"ReadBuffer", c.ReadBuffer, minBuffer, maxBuffer},
		{"WriteBuffer", c.WriteBuffer, minBuffer, maxBuffer},
		{"MaxReadBuffer", c.MaxReadBuffer, c.ReadBuffer, maxBuffer},
		{"Credits", c.Credits, minCredits, maxCredits},
		{"IOMap", c.IOMap, 0, wire.MaxEntries},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("rsocket: Config.%s is %d, which is not between %d and %d", f.name, f.value, f.least, f.most)
		}
	}
	q := &c.QP
	if q.PD != nil || q.SendCQ != nil || q.RecvCQ != nil || q.SRQ != nil {
		return errors.New("rsocket: Config.QP has a PD, CQ or SRQ, which each Conn has of its own")
	}
	if q.MPA.RTR&iwarp.RTRSend != 0 {
		return errors.New("rsocket: Config.QP.MPA.RTR has RTRSend, a message that the protocol does not have")
	}
	if q.SendDepth != 0 || q.RecvDepth != 0 || len(q.PrivateData) != 0 {
		return errors.New("rsocket: Config.QP has a depth or PrivateData, which the protocol determines")
	}
	return nil
}
