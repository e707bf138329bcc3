package transfer

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
)

// DefaultAddr is where a server listens unless told otherwise: on loopback.
const DefaultAddr = "127.0.0.1:7471"

// A Link describes how both sides make a connection.
type Link struct {
	Network string  // tcp, or DDP over SCTP: sctp, the kernel's, or sctp+udp, in user space
	NoCRC   bool    // waive the CRC32c of MPA, which is used if either side wants it
	Loss    float64 // percentage of the UDP datagrams of sctp+udp that are dropped
	Latency bool    // measure each operation, for RNIC.Stats
}

// Check returns what is wrong with the options of a link, in terms of the command line. Options without effect are errors. Only
// TCP can be traced.
func (k Link) Check(traced bool) error {
	switch k.Network {
	case "tcp", "sctp", "sctp+udp":
	default:
		return fmt.Errorf("--network %q: tcp, sctp and sctp+udp are known", k.Network)
	}
	switch {
	case k.Loss != 0 && k.Network != "sctp+udp":
		return errors.New("--loss is for --network sctp+udp")
	case !(k.Loss >= 0 && k.Loss <= 100): // NaN is neither
		return fmt.Errorf("--loss %g: want 0 to 100", k.Loss)
	case k.NoCRC && k.Network != "tcp": // SCTP has its own CRC, which cannot be waived
		return errors.New("--nocrc is for tcp")
	case traced && k.Network != "tcp":
		return errors.New("--trace is for tcp")
	}
	return nil
}

// CheckFile refuses the name that other programs use for their standard input or output: only files can be copied.
func CheckFile(name string) error {
	if name == "-" {
		return errors.New("- is neither the standard input nor the output here: a file of that name is ./-")
	}
	return nil
}

// open makes an RNIC that uses this link.
func (k Link) open(cfg iwarp.Config) (*iwarp.RNIC, error) {
	cfg.Latency = k.Latency
	if k.Loss > 0 {
		cfg.ListenPacket = k.listenPacket
	}
	return iwarp.Open(&cfg)
}
