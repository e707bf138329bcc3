package target

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
)

// A Config configures a [Target]. Zero fields mean defaults, and so does a nil *Config.
type Config struct {
	// RNIC makes the connections. nil: the target opens one, which Close closes. If the program provides the RNIC, it must
	// pass its Events to [Target.Event].
	RNIC *iwarp.RNIC
	// PD is the protection domain of all connections, of that RNIC. nil: the target allocates one.
	PD *iwarp.PD

	// TLS and Auth are as in [iwarp.ListenConfig], for Listen.
	TLS  *tls.Config
	Auth iwarp.Authenticator
	// Authorize decides for each Connect whether the peer that TLS or Auth has authenticated may use its NQN, and the
	// subsystem, which may be the discovery subsystem. An error refuses the Connect with 0x184, as if the host were not in
	// Subsystem.Hosts. The error is logged, but not sent to the host. nil: each authenticated peer may use the NQN of any
	// other. Authorize must not block, and not call the target.
	Authorize func(*Login) error
	// SetupTimeout is the time from the connection to the complete Request, for Listen: 5 s.
	SetupTimeout time.Duration

	// NoCRC waives the CRC of FPDUs, unless the host requests it.
	NoCRC bool
	// ORD is how many RDMA Reads may be outstanding on a connection: 16, or fewer if the host answers fewer at a time.
	ORD int
	// UnknownORD is the same for a host that does not say how many it answers (MPA revision 1, or 0x3FFF): 1.
	UnknownORD int
	// Solicitor makes the RDMA Reads of all connections wait for their part of a window. Capsules then contain no data, so
	// hosts send no unsolicited data. The window must have room for the largest Read, 1 MiB with the default MDTS. With a
	// dispatch timeout of 5 s (solicit.Config.Dispatch), commands that wait longer are answered with 0x022.
	Solicitor *iwarp.Solicitor
	// SRQ is how many receives all queues share. The commands of all hosts may occupy them, so hosts can block each other. A
	// command that finds no receive ends its connection. 0: each queue has its own receives.
	SRQ int

	// InCapsule is how many octets of data capsules of I/O queues may contain, a multiple of 16 up to 16384: 4096; negative: 0.
	InCapsule int
	// MDTS limits what a command moves to 2^MDTS pages of 4 KiB, 1 to 11: 8, which is 1 MiB.
	MDTS int
	// Advertised is the address in the discovery log. If not valid, it is the one to which the host has connected.
	Advertised netip.AddrPort

	Limits Limits
	// Logger logs what an operator may want to know; nil: nothing is logged. The number of lines is limited.
	Logger *slog.Logger
}

// A Login is the identity that a host presents when it connects a queue.
type Login struct {
	Peer            iwarp.Peer // see [iwarp.QP.Peer]
	Authenticated   bool       // otherwise Peer is zero, and the host may be anyone
	Remote          netip.AddrPort
	HostNQN, SubNQN string
	HostID          [16]byte
}

// Limits bound the resources of a target. Zero fields mean the defaults in the comments.
type Limits struct {
	Connections  int // of all hosts: 1024
	PerAddress   int // connections of one address: 128
	Controllers  int // of all subsystems: 256
	PerSubsystem int // controllers: 64
	PerHost      int // controllers of one host NQN: 16
	IOQueues     int // of a controller: 64
	QueueEntries int // of an I/O queue: 128

	// Octets of buffers, without receives: each entry of each queue, or of the SRQ, has a receive of the length of a
	// command and Config.InCapsule. Reads of a back end that never waits (backend.Traits.Immediate) may use 2 MiB of
	// QueueMemory, or one command.
	QueueMemory int // for data in progress on one queue: 8 MiB
	Memory      int // for data in progress on all queues: 512 MiB
	Idle        int // kept for later: a quarter of Memory; negative: none

	Workers int // goroutines that call the back end of one namespace: 4 for each processor, at most 64
}

// Times that are not configured.
const (
	memoryWait    = 5 * time.Second  // of a command for a buffer, before it is answered with 0x022
	stallWait     = 30 * time.Second // of a Read or Write without progress, before the queue is closed
	shutdownLimit = 10 * time.Second
	maxWorkers    = 64
)

// withDefaults returns a copy of c with defaults, checked except for what the model checks.
func (c *Config) withDefaults() (*Config, error) {
	var d Config
	if c != nil {
		d = *c
	}
	d.SetupTimeout = cmp.Or(d.SetupTimeout, 5*time.Second)
	d.ORD = cmp.Or(d.ORD, 16)
	d.UnknownORD = cmp.Or(d.UnknownORD, 1)
	d.InCapsule = cmp.Or(d.InCapsule, 4096)
	d.MDTS = cmp.Or(d.MDTS, 8)
	l := &d.Limits
	l.QueueMemory = cmp.Or(l.QueueMemory, 8<<20)
	l.Memory = cmp.Or(l.Memory, 512<<20)
	l.Idle = cmp.Or(l.Idle, l.Memory/4)
	l.Workers = cmp.Or(l.Workers, min(4*runtime.GOMAXPROCS(0), maxWorkers))
	if d.InCapsule < 0 || d.Solicitor != nil {
		d.InCapsule = 0
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return &d, d.check()
}

func (c *Config) check() error {
	if c.MDTS < 1 || c.MDTS > 11 {
		return fmt.Errorf("nvme: Config.MDTS is %d, and not 1 to 11", c.MDTS)
	}
	l, most := &c.Limits, capsule.PageSize<<c.MDTS
	switch {
	case l.QueueMemory < most || l.Memory < l.QueueMemory:
		return fmt.Errorf("nvme: Limits.QueueMemory is %d and Limits.Memory %d: the largest command needs %d", l.QueueMemory, l.Memory, most)
	case l.Workers < 1 || l.Workers > maxWorkers:
		return fmt.Errorf("nvme: Limits.Workers is %d, and not 1 to %d", l.Workers, maxWorkers)
	case c.SRQ < 0:
		return fmt.Errorf("nvme: Config.SRQ is negative: %d", c.SRQ)
	case c.PD != nil && c.RNIC == nil:
		return fmt.Errorf("nvme: Config has a PD without its RNIC")
	}
	return nil
}

// model returns the configuration of the model.
func (c *Config) model() model.Config {
	m := model.DefaultConfig()
	m.ORD, m.UnknownORD, m.InCapsule, m.MDTS = c.ORD, c.UnknownORD, c.InCapsule, uint8(c.MDTS)
	m.Advertised = addressOf(c.Advertised)
	l, to := &c.Limits, &m.Limits
	for _, f := range []struct{ to, from *int }{
		{&to.Connections, &l.Connections},
		{&to.PerAddress, &l.PerAddress},
		{&to.Controllers, &l.Controllers},
		{&to.PerSubsystem, &l.PerSubsystem},
		{&to.PerHost, &l.PerHost},
		{&to.IOQueues, &l.IOQueues},
		{&to.QueueEntries, &l.QueueEntries},
	} {
		if *f.from != 0 {
			*f.to = *f.from
		}
	}
	// A log is a command like any other: it is in one buffer.
	m.MaxLog = min(m.MaxLog, uint32(capsule.PageSize<<c.MDTS))
	return m
}

// addressOf returns an address in the form of the discovery log, the zero value for an invalid address.
func addressOf(a netip.AddrPort) model.Address {
	if !a.IsValid() {
		return model.Address{}
	}
	ip := a.Addr().Unmap().WithZone("")
	family := uint8(capsule.AddressIPv6)
	if ip.Is4() {
		family = capsule.AddressIPv4
	}
	return model.Address{Family: family, Addr: ip.String(), Service: strconv.Itoa(int(a.Port()))}
}
