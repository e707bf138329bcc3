package sctpkernel

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// Config configures a Client or a Listener. The zero value is valid.
type Config struct {
	// PeerTimeout is about how long a peer may be silent before its association ends, at most
	// 198 days; 0 means 15 s. Heartbeats keep an idle association alive.
	PeerTimeout time.Duration
	// Refused, if not nil, is called for each session that a peer has begun to request and that a Listener does not return. It
	// should be fast: the messages of the association wait.
	Refused func(remote net.Addr, cause error)
}

const defaultPeerTimeout = 15 * time.Second

func (c Config) withDefaults() Config {
	if c.PeerTimeout <= 0 {
		c.PeerTimeout = defaultPeerTimeout
	}
	return c
}

const (
	// maxStreams is how many pairs of streams are requested for an association.
	maxStreams = 1024
	// maxAssociations is how many associations a listener keeps.
	maxAssociations = 4096
	// shutdownTime bounds the graceful end of an association that a caller waits for.
	shutdownTime = 500 * time.Millisecond
	// idleTime is how long a listener keeps an association without a session.
	idleTime = 10 * time.Second
	// lastAcksTime is how long an association without a session waits until the peer has acknowledged
	// what the last session sent: a peer that reads slowly, or not at all, may report for ever that it
	// has no room. It is longer than an association survives an outage.
	lastAcksTime = 5 * time.Minute

	// sendBuffer and receiveBuffer are the buffer sizes requested for an association. The
	// system may give less. Linux counts more than 500 octets for each message that is not
	// acknowledged, and doubles the requested size, so that sendBuffer keeps the number of such
	// messages below the 32767 that the DDP-SSN can distinguish (RFC 5043 section 10).
	sendBuffer    = 2 << 20
	receiveBuffer = 1 << 20
)

var (
	// ErrNoSCTP says that the system does not support SCTP.
	ErrNoSCTP = errors.New("sctp: this system's kernel has no SCTP")
	// ErrNotDDP says that the peer's association is not for DDP: it gave no adaptation
	// indication, or another one (RFC 5043 section 11.1).
	ErrNotDDP = errors.New("sctp: the peer gives no indication of DDP")

	errReset    = fmt.Errorf("sctp: association aborted: %w", syscall.ECONNRESET)
	errShutdown = fmt.Errorf("sctp: association shut down: %w", syscall.ECONNRESET)
	errRestart  = fmt.Errorf("sctp: association restarted by the peer: %w", syscall.ECONNRESET)
	errStream   = errors.New("sctp: the peer uses a stream that it does not have")
	errFlood    = errors.New("sctp: the peer asks for sessions and does not take the answers")
)
