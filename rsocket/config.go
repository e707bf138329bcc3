package rsocket

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A Config configures a Conn. The zero value, like a nil *Config, means the defaults.
type Config struct {
	// ReadBuffer and WriteBuffer are the octets of memory for each direction, from 4 KiB to 1 GiB:
	// 256 KiB each. The peer writes into one half of ReadBuffer while the program reads the other.
	ReadBuffer, WriteBuffer int
	// MaxReadBuffer is the size in octets, up to 1 GiB, to which the read buffer may grow: 4 MiB, or ReadBuffer if
	// that is more. The buffer grows while the peer has to wait for room and the program therefore waits for octets,
	// but not while the program reads more slowly than the peer sends.
	MaxReadBuffer int
	// Credits is how many messages may be unread by the program before the peer must stop sending, from 16 to
	// 65,534: 384. One message carries the octets, or some of the octets, of one Write of the peer. It is lowered to 64 less
	// than Limits.MaxQueueDepth of the RNIC if it is more.
	Credits int
	// IOMap is how many pieces of memory the peer may name for WriteMapped, from 0 to 32,512; above 128 it is rounded up to a
	// multiple of 256. 0: none.
	IOMap int
	// LenientEOF makes Read return io.EOF instead of io.ErrUnexpectedEOF if the peer ends the connection
	// without having ended the stream, as a program does that exits without rclose.
	LenientEOF bool
	// QP configures the queue pair: timeouts, MPA, TLS and Auth for Dial, and so on. This package sets its PD, CQs, SRQ,
	// depths and PrivateData; the program must not. Accepted connections do not use its TLS and Auth. Its MPA.RTR
	// cannot contain RTRSend, an empty message that the protocol does not have: an initiator that offers nothing else
	// is not accepted.
	QP iwarp.QPConfig
	// Listen configures the listener of Listen: TLS, Auth, and the limits for connections in set-up.
	Listen iwarp.ListenConfig
	// Refused, if not nil, is called for each connection request that a Listener did not turn into a connection, with the cause:
	// for example, the initiator does not use rsockets, or the RNIC has no room left. Accept returns nothing for such a request.
	// The goroutine of the request calls Refused. Peers that are not authenticated can cause calls, so bound what is logged.
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
