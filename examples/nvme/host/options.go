package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/internal/quota"
)

// Options configure a host. Zero fields mean defaults, and so does a nil *Options.
type Options struct {
	// HostNQN is the name of this host, and HostID its identifier. By default the identifier is
	// random, and the name is derived from it. A target refuses a name that it knows with another
	// identifier, so set both or none.
	HostNQN string
	HostID  [16]byte

	// Queues is how many I/O queues to have: 1 by default, 64 at most. The target may grant
	// fewer.
	Queues int
	// QueueSize is how many entries an I/O queue has, one more than the commands that it may have
	// outstanding: 128 by default, 2 to 1024. The target may have smaller queues.
	QueueSize int
	// MaxTransfer is the maximum number of octets that one command moves: 1 MiB by default, which
	// is also what Linux's siw can take, and at most 8 MiB. The target may take less.
	MaxTransfer int
	// NoInCapsule keeps data out of capsules even if the target accepts them there.
	NoInCapsule bool

	// KATO is the time without a command after which the target gives up the host: 5 s by default,
	// negative: never. The host sends Keep Alives often enough. If one is not answered within this
	// time, the connections end.
	KATO time.Duration
	// IOTimeout and AdminTimeout are how long a command may take: 30 s and 60 s by default.
	IOTimeout, AdminTimeout time.Duration
	// Retries is how often a command is sent again, after a status without DNR or after a new
	// connection: 5 times by default; negative: never.
	Retries int
	// ReconnectDelay is the time between the loss of the connections and an attempt to connect
	// again, and between such attempts: 10 s by default.
	ReconnectDelay time.Duration
	// CtrlLoss is the time without connections after which the controller is given up: 600 s by
	// default; negative: at once.
	CtrlLoss time.Duration

	// Network is the network for RNIC.Dial: "tcp" by default.
	Network string
	// Dial, unless it is nil, makes the TCP connections instead of RNIC.Dial, for sockets that need a certain address or
	// options. DialContext of a net.Dialer fits.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// RNIC makes the connections. By default each controller has its own.
	RNIC *iwarp.RNIC
	// QPConfig is the template of each connection: Auth, TLS, MPA.NoCRC, IRD (128 by default),
	// Setup, SetupTrace, UserData and Trace. Setup may not post receives. Settings that NVMe
	// determines are ignored: PD, CQs, depths, ORD, private data and the MPA start-up.
	QPConfig iwarp.QPConfig
}

const (
	maxQueues    = 64
	maxQueueSize = 1024
	maxTransfer  = 8 << 20
	adminSize    = 32 // entries of the admin queue
	defaultIRD   = 128
)

// withDefaults returns a checked copy of o with the defaults filled in.
func (o *Options) withDefaults() (*Options, error) {
	c := Options{}
	if o != nil {
		c = *o
	}
	if c.HostID == [16]byte{} {
		c.HostID = randomUUID()
	}
	if c.HostNQN == "" {
		c.HostNQN = hostNQN(c.HostID)
	}
	c.Queues = cmp.Or(c.Queues, 1)
	c.QueueSize = cmp.Or(c.QueueSize, 128)
	c.MaxTransfer = cmp.Or(c.MaxTransfer, 1<<20)
	c.KATO = cmp.Or(c.KATO, 5*time.Second)
	c.IOTimeout = cmp.Or(c.IOTimeout, 30*time.Second)
	c.AdminTimeout = cmp.Or(c.AdminTimeout, 60*time.Second)
	c.Retries = cmp.Or(c.Retries, 5)
	c.ReconnectDelay = cmp.Or(c.ReconnectDelay, 10*time.Second)
	c.CtrlLoss = cmp.Or(c.CtrlLoss, 600*time.Second)
	c.Network = cmp.Or(c.Network, "tcp")
	c.KATO, c.Retries, c.CtrlLoss = max(c.KATO, 0), max(c.Retries, 0), max(c.CtrlLoss, 0)
	return &c, c.check()
}

func (o *Options) check() error {
	if err := capsule.CheckNQN(o.HostNQN); err != nil {
		return fmt.Errorf("nvme: Options.HostNQN: %w", err)
	}
	for _, f := range []struct {
		name        string
		v, from, to int
	}{
		{"Queues", o.Queues, 1, maxQueues},
		{"QueueSize", o.QueueSize, 2, maxQueueSize},
		{"MaxTransfer", o.MaxTransfer, capsule.PageSize, maxTransfer},
	} {
		if f.v < f.from || f.v > f.to {
			return fmt.Errorf("nvme: Options.%s is %d: it may be %d to %d", f.name, f.v, f.from, f.to)
		}
	}
	if err := quota.Negative("nvme: Options", *o); err != nil {
		return err
	}
	switch {
	case o.KATO > 0 && o.KATO < time.Millisecond || o.KATO > 10*time.Minute:
		return fmt.Errorf("nvme: Options.KATO is %v: it may be 1 ms to 10 min", o.KATO)
	case o.QPConfig.SRQ != nil:
		return errors.New("nvme: Options.QPConfig has an SRQ")
	case o.QPConfig.IRD < 0:
		return errors.New("nvme: Options.QPConfig allows no RDMA Reads, by which the target fetches data")
	}
	return nil
}

// randomUUID returns a random identifier (RFC 9562, version 4).
func randomUUID() (id [16]byte) {
	rand.Read(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// hostNQN returns the name that a host derives from its identifier (Base 2.0, 4.5).
func hostNQN(id [16]byte) string {
	return fmt.Sprintf("nqn.2014-08.org.nvmexpress:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
