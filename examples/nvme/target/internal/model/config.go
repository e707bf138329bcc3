package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// A Config configures a Target. Zeros do not mean defaults: start with [DefaultConfig].
type Config struct {
	ORD        int    // RDMA Reads outstanding on a connection, at most; at least 1
	UnknownORD int    // the same for a host that does not report its IRD
	InCapsule  int    // octets of data in capsules of I/O queues: 0 (off) to 16384, a multiple of 16
	MDTS       uint8  // a command moves at most 2^MDTS pages of 4 KiB: 1 to 11
	MaxLog     uint32 // octets of a Get Log Page
	Compare    bool   // the command Compare is supported
	Firmware   string // revision: up to 8 octets of ASCII
	// Advertised is the address in the discovery log. The zero Address is the one to which the host connected.
	Advertised     Address
	ConnectTimeout time.Duration // from the Reply to a successful Connect
	DiscoveryIdle  time.Duration // keep alive timeout of discovery controllers whose host has none
	MaxKATO        time.Duration // of the feature
	Limits         Limits
}

// Limits bound the resources of a target. Requests beyond them are refused.
type Limits struct {
	Connections    int // of all hosts
	PerAddress     int // connections of one address
	Controllers    int // of all subsystems
	PerSubsystem   int // controllers
	PerHost        int // controllers of one host NQN
	IOQueues       int // of a controller
	QueueEntries   int // of an I/O queue
	AdminEntries   int // of an admin queue
	Subsystems     int // without the discovery subsystem
	NamespaceCount int // of a subsystem, and the highest NSID
}

// DefaultConfig returns the Config that the specification of the example proposes.
func DefaultConfig() Config {
	return Config{
		ORD:            16,
		UnknownORD:     1,
		InCapsule:      4096,
		MDTS:           8,
		MaxLog:         1 << 20,
		Compare:        true,
		Firmware:       "1.0",
		ConnectTimeout: 10 * time.Second,
		DiscoveryIdle:  120 * time.Second,
		MaxKATO:        10 * time.Minute,
		Limits: Limits{
			Connections:    1024,
			PerAddress:     128,
			Controllers:    256,
			PerSubsystem:   64,
			PerHost:        16,
			IOQueues:       64,
			QueueEntries:   128,
			AdminEntries:   32,
			Subsystems:     256,
			NamespaceCount: capsule.MaxNamespaces,
		},
	}
}

// Bounds of what can be configured.
const (
	maxInCapsule = 16384
	maxMDTS      = 11 // 8 MiB; a keyed SGL has less than 16 MiB
	maxEntries   = 4096
	maxIOQueues  = 1024
)

// check returns what is wrong with the configuration.
func (c *Config) check() error {
	l := &c.Limits
	for _, n := range []struct {
		name          string
		value, lo, hi int64
	}{
		{"ORD", int64(c.ORD), 1, 1 << 13},
		{"UnknownORD", int64(c.UnknownORD), 1, 1 << 13},
		{"InCapsule", int64(c.InCapsule), 0, maxInCapsule},
		{"MDTS", int64(c.MDTS), 1, maxMDTS},
		{"MaxLog", int64(c.MaxLog), capsule.PageSize, 1 << 23},
		{"ConnectTimeout", int64(c.ConnectTimeout), 1, int64(time.Hour)},
		{"DiscoveryIdle", int64(c.DiscoveryIdle), 1, int64(24 * time.Hour)},
		{"MaxKATO", int64(c.MaxKATO), 1, int64(24 * time.Hour)},
		{"Limits.Connections", int64(l.Connections), 1, 1 << 20},
		{"Limits.PerAddress", int64(l.PerAddress), 1, 1 << 20},
		{"Limits.Controllers", int64(l.Controllers), 1, capsule.MaxCNTLID},
		{"Limits.PerSubsystem", int64(l.PerSubsystem), 1, capsule.MaxCNTLID},
		{"Limits.PerHost", int64(l.PerHost), 1, capsule.MaxCNTLID},
		{"Limits.IOQueues", int64(l.IOQueues), 1, maxIOQueues},
		{"Limits.QueueEntries", int64(l.QueueEntries), 2, maxEntries},
		{"Limits.AdminEntries", int64(l.AdminEntries), 2, maxEntries},
		{"Limits.Subsystems", int64(l.Subsystems), 1, capsule.MaxDiscoveryEntries - 1},
		{"Limits.NamespaceCount", int64(l.NamespaceCount), 1, 1 << 16},
	} {
		if n.value < n.lo || n.value > n.hi {
			return fmt.Errorf("nvme: %s is %d, and not %d to %d", n.name, n.value, n.lo, n.hi)
		}
	}
	if c.InCapsule%16 != 0 {
		return errors.New("nvme: InCapsule is not a multiple of 16")
	}
	if c.Advertised != (Address{}) {
		return c.Advertised.check()
	}
	return nil
}

// maxTransfer returns how many octets a command may move.
func (c *Config) maxTransfer() uint64 { return capsule.PageSize << c.MDTS }

// ReceiveSize returns the maximum length of a message that a queue can receive: a command with its data. Every
// queue can receive a Connect with its data in the capsule.
func (c *Config) ReceiveSize(qid uint16) int {
	n := capsule.ConnectDataSize
	if qid != 0 {
		n = max(n, c.InCapsule)
	}
	return capsule.SQESize + n
}
