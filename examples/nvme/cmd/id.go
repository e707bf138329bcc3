package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/bits"

	"github.com/goiwarp/iwarp/examples/nvme/host"
)

func idFlags(fs *flag.FlagSet) action {
	i, nsid := &initiator{}, uint(0)
	i.flags(fs, true)
	fs.UintVar(&nsid, "nsid", 0, "print what there is to tell of this `namespace`, and not of the controller")
	return i.with(func(ctx context.Context, s *streams, c *host.Controller) error {
		if nsid != 0 {
			return printNamespace(ctx, s.out, c, nsid)
		}
		return printController(ctx, s.out, c)
	})
}

// A field is a name, and a value to be printed unchanged.
type field struct {
	name  string
	value any
}

func printFields(w io.Writer, fields []field) {
	for _, f := range fields {
		fmt.Fprintf(w, "%-9s : %v\n", f.name, f.value)
	}
}

// printController prints fields of Identify Controller, with the names that nvme id-ctrl uses.
func printController(ctx context.Context, w io.Writer, c *host.Controller) error {
	id, err := c.Identify(ctx)
	if err != nil {
		return err
	}
	queues, commands := c.Queues()
	printFields(w, []field{
		{"sn", clean(id.SN)},
		{"mn", clean(id.MN)},
		{"fr", clean(id.FR)},
		{"cmic", fmt.Sprintf("%#x", id.CMIC)},
		{"mdts", id.MDTS},
		{"cntlid", fmt.Sprintf("%#x", id.CNTLID)},
		{"ver", id.VER},
		{"oaes", fmt.Sprintf("%#x", id.OAES)},
		{"ctratt", fmt.Sprintf("%#x", id.CTRATT)},
		{"cntrltype", id.CNTRLTYPE},
		{"acl", id.ACL},
		{"aerl", id.AERL},
		{"lpa", fmt.Sprintf("%#x", id.LPA)},
		{"kas", id.KAS},
		{"maxcmd", id.MAXCMD},
		{"nn", id.NN},
		{"oncs", fmt.Sprintf("%#x", id.ONCS)},
		{"vwc", fmt.Sprintf("%#x", id.VWC)},
		{"awun", id.AWUN},
		{"awupf", id.AWUPF},
		{"sgls", fmt.Sprintf("%#x", id.SGLS)},
		{"subnqn", clean(id.SubNQN)},
		{"ioccsz", id.IOCCSZ},
		{"iorcsz", id.IORCSZ},
		{"icdoff", id.ICDOFF},
		{"msdbd", id.MSDBD},
		{"queues", fmt.Sprintf("%d of %d commands", queues, commands)},
	})
	return nil
}

func printNamespace(ctx context.Context, w io.Writer, c *host.Controller, nsid uint) error {
	n, err := namespace(ctx, c, nsid)
	if err != nil {
		return err
	}
	printFields(w, []field{
		{"nsze", n.Size() / int64(n.BlockSize())},
		{"lbads", bits.TrailingZeros(uint(n.BlockSize()))},
		{"readonly", n.ReadOnly()},
		{"trimzero", n.TrimmedReadsZero()},
		{"uuid", formatUUID(n.UUID())},
		{"nguid", fmt.Sprintf("%x", n.NGUID())},
		{"eui64", fmt.Sprintf("%x", n.EUI64())},
	})
	return nil
}
