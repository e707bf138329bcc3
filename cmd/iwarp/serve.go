package main

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/examples/filecopy/transfer"
)

func serveCommand() *cobra.Command {
	c := &copying{}
	cmd := &cobra.Command{
		Use: "serve DIRECTORY", Short: "serve the files of a directory, for iwarp put and get", Args: cli.Args(1, 1),
		Long: `Prints the address where it listens, then serves until it is interrupted. There is no authentication: every host that
can reach the address can read and replace every file below DIRECTORY. The server listens on loopback unless told
otherwise.`,
		Example: "  iwarp serve --addr 192.0.2.1:7471 /srv/files",
		RunE: func(cmd *cobra.Command, args []string) error {
			streams := cli.StreamsOf(cmd)
			log := slog.New(slog.NewTextHandler(streams.Err, nil))
			s, err := transfer.Listen(cmd.Context(), c.Link, c.addr, args[0], log)
			if err != nil {
				return err
			}
			if c.json {
				err = json.NewEncoder(streams.Out).Encode(map[string]string{"addr": s.Addr().String()})
			} else {
				_, err = fmt.Fprintln(streams.Out, s.Addr())
			}
			if err != nil {
				return err
			}
			return s.Run(cmd.Context())
		},
	}
	c.linkFlags(cmd)
	cmd.Flags().StringVar(&c.addr, "addr", transfer.DefaultAddr, "`ADDRESS` to listen on, host:port")
	return cmd
}
