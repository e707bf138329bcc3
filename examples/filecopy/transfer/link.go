package transfer

import "github.com/goiwarp/iwarp"

// DefaultAddr is where a server listens unless told otherwise: on loopback.
const DefaultAddr = "127.0.0.1:7471"

// A Link is how both sides of a connection make it.
type Link struct {
	Network string  // tcp, or DDP over SCTP: sctp, the kernel's, or sctp+udp, in user space
	NoCRC   bool    // waive the CRC32c of MPA, which is used if either side wants it
	Loss    float64 // percent of the UDP datagrams that are thrown away
	Latency bool    // measure each operation, for RNIC.Stats
}

// open makes an RNIC that has this link.
func (k Link) open(cfg iwarp.Config) (*iwarp.RNIC, error) {
	cfg.Latency = k.Latency
	if k.Loss > 0 {
		cfg.ListenPacket = k.listenPacket
	}
	return iwarp.Open(&cfg)
}
