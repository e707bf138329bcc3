package machine

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

// transports tries each network.
func transports(ctx context.Context) []Fact {
	all := []Fact{
		network(ctx, "tcp", "MPA over TCP"),
		fastPath(),
		{Group: "transports", Name: "tls", Value: "TLS 1.3 below MPA, by crypto/tls"},
		network(ctx, "sctp", "DDP over the SCTP of the kernel"),
		network(ctx, "sctp+udp", "DDP over SCTP over UDP, in user space"),
	}
	return all
}

// network listens on a network for a moment.
func network(ctx context.Context, name, what string) Fact {
	f := Fact{Group: "transports", Name: name, Value: what}
	err := listens(ctx, name)
	switch {
	case err == nil:
		return f
	case errors.Is(err, sctpkernel.ErrNoSCTP):
		f.Remedy = "on Linux: modprobe sctp, as root; in some distributions it is in the package linux-modules-extra. sctp+udp needs no kernel module"
	default:
		f.Remedy = err.Error()
	}
	f.Lacks, f.Value = true, "missing: "+what
	return f
}

func listens(ctx context.Context, network string) error {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return err
	}
	defer func() { _ = rnic.Close() }() // nothing is connected
	l, err := rnic.Listen(ctx, network, "127.0.0.1:0", nil)
	if err != nil {
		return err
	}
	return l.Close()
}
