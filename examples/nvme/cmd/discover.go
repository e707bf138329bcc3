package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

func discoverFlags(fs *flag.FlagSet) action {
	i := &initiator{}
	i.flags(fs, false)
	return i.listEntries
}

// listEntries prints the discovery log as nvme-cli does.
func (i *initiator) listEntries(ctx context.Context, s *streams, args []string) error {
	addr := withPort(args[0])
	o, err := i.options(addr, s)
	if err != nil {
		return err
	}
	entries, err := i.discover(ctx, addr, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "Discovery log: %d records\n", len(entries))
	for n, e := range entries {
		fmt.Fprintf(s.out, "=====Discovery Log Entry %d======\n", n)
		for _, f := range []struct{ name, value string }{
			{"trtype", named(e.TRTYPE, map[uint8]string{capsule.TransportRDMA: "rdma"})},
			{"adrfam", named(e.ADRFAM, map[uint8]string{capsule.AddressIPv4: "ipv4", capsule.AddressIPv6: "ipv6"})},
			{"subtype", named(e.SUBTYPE, map[uint8]string{
				capsule.SubtypeReferral: "discovery subsystem referral", capsule.SubtypeNVM: "nvme subsystem",
				capsule.SubtypeDiscovery: "current discovery subsystem",
			})},
			{"portid", fmt.Sprint(e.PORTID)},
			{"trsvcid", clean(e.TRSVCID)},
			{"subnqn", clean(e.SubNQN)},
			{"traddr", clean(e.TRADDR)},
			{"rdma_prtype", named(e.PRTYPE, map[uint8]string{1: "not specified", capsule.ProviderIWARP: "iwarp"})},
			{"rdma_qptype", named(e.QPTYPE, map[uint8]string{capsule.QPTypeConnected: "connected"})},
			{"rdma_cms", named(e.CMS, map[uint8]string{capsule.CMSRDMACM: "rdma-cm"})},
		} {
			fmt.Fprintf(s.out, "%-12s %s\n", f.name+":", f.value)
		}
	}
	return nil
}

// named returns the name of a value, or the value if it has none.
func named(v uint8, names map[uint8]string) string {
	if name, ok := names[v]; ok {
		return name
	}
	return fmt.Sprint(v)
}

// clean returns a text of the target, which can be anything, without terminal control characters.
func clean(text string) string {
	q := fmt.Sprintf("%q", text)
	return q[1 : len(q)-1]
}
