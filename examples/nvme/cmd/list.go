package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"text/tabwriter"

	"github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/internal/units"
)

func listFlags(fs *flag.FlagSet) action {
	i := &initiator{}
	i.flags(fs, true)
	return i.with(listNamespaces)
}

// with returns an action that connects and calls do with the controller.
func (i *initiator) with(do func(ctx context.Context, s *streams, c *host.Controller) error) action {
	return func(ctx context.Context, s *streams, args []string) (err error) {
		c, err := i.connect(ctx, args[0], s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		return do(ctx, s, c)
	}
}

// listNamespaces prints a line for each namespace, as nvme list does.
func listNamespaces(ctx context.Context, s *streams, c *host.Controller) error {
	id, err := c.Identify(ctx)
	if err != nil {
		return err
	}
	namespaces, err := c.Namespaces(ctx) // namespaces that this host cannot use are only in the error
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NSID\tSize\tFormat\tAccess\tSerial\tModel\tUUID")
	for _, n := range namespaces {
		access, octets := "rw", units.Size(n.Size())
		if n.ReadOnly() {
			access = "ro"
		}
		fmt.Fprintf(w, "%d\t%s\t%d B\t%s\t%s\t%s\t%s\n",
			n.NSID(), &octets, n.BlockSize(), access, clean(id.SN), clean(id.MN), formatUUID(n.UUID()))
	}
	return errors.Join(err, w.Flush())
}

// namespace finds a namespace.
func namespace(ctx context.Context, c *host.Controller, nsid uint) (*host.Namespace, error) {
	list, err := c.Namespaces(ctx)
	for _, n := range list {
		if uint64(n.NSID()) == uint64(nsid) {
			return n, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("there is no namespace %d", nsid), err)
}
