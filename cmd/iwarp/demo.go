package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/examples/filecopy/transfer"
	"github.com/goiwarp/iwarp/internal/units"
)

func demoCommand() *cobra.Command {
	c := &copying{}
	size := units.Size(256 << 20)
	cmd := &cobra.Command{
		Use: "demo", Short: "copy a file between two processes by RDMA, there and back", Args: cli.NoArgs,
		Long: `Starts a server in a second process, makes a file, copies it there by RDMA Writes, deletes it, and copies it back by RDMA
Reads. It fails unless the SHA-256 sums are the same, and the counters of both processes show that each octet went by
RDMA.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			trace, err := c.openTrace("")
			if err != nil {
				return err
			}
			s := c.streams(cmd)
			out := s.Out
			if c.json {
				out = io.Discard
			}
			d := &transfer.Demonstration{Link: c.Link, Size: int64(size), Trace: trace, Bar: s.Err}
			shown, err := d.Run(cmd.Context(), out)
			if err != nil || !c.json {
				return err
			}
			return json.NewEncoder(s.Out).Encode(shown)
		},
	}
	c.clientFlags(cmd)
	cmd.Flags().Var(&size, "size", "`SIZE` of the file, as in 100000, 64MiB or 5GiB")
	return cmd
}
