package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/exporter"
	"github.com/goiwarp/iwarp/examples/filecopy/transfer"
)

func serveCommand() *cobra.Command {
	c := &copying{}
	cmd := &cobra.Command{
		Use: "serve DIRECTORY", Short: "serve the files of a directory, for iwarp put and get", Args: cli.Args(1, 1),
		Long: `Prints the address where it listens, then serves until it is interrupted. There is no authentication: every host that
can reach the address can read and replace every file below DIRECTORY. The server listens on loopback unless told
otherwise. With --http it also prints the URL of a live page, which shows each connection to any host that can reach it.`,
		Example: `  iwarp serve --addr 192.0.2.1:7471 /srv/files
  iwarp serve --http :9464 /srv/files`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return err
			}
			if c.http == "" {
				return c.serve(cmd, args[0], "", func(*iwarp.RNIC) {})
			}
			set := exporter.NewSet()
			e, err := set.Serve(cmd.Context(), c.http)
			if err != nil {
				return fmt.Errorf("--http: %w", err)
			}
			c.Latency = true
			return errors.Join(c.serve(cmd, args[0], e.URL(), set.Add), e.Close())
		},
	}
	c.linkFlags(cmd)
	cmd.Flags().StringVar(&c.addr, "addr", transfer.DefaultAddr, "`ADDRESS` to listen on, host:port")
	cmd.Flags().StringVar(&c.http, "http", "", "serve a live page of the connections at http://`ADDRESS`/, and counters for Prometheus at /metrics: host:port, on the loopback without a host")
	return cmd
}

// serve serves a directory. page is the URL of the page that shows the RNIC; opened is called with the RNIC.
func (c *copying) serve(cmd *cobra.Command, dir, page string, opened func(*iwarp.RNIC)) error {
	streams := cli.StreamsOf(cmd)
	s, err := transfer.Listen(cmd.Context(), c.Link, c.addr, dir, slog.New(slog.NewTextHandler(streams.Err, nil)))
	if err != nil {
		return err
	}
	opened(s.RNIC())
	if c.json {
		err = json.NewEncoder(streams.Out).Encode(listening{s.Addr().String(), page})
	} else {
		_, err = fmt.Fprintln(streams.Out, strings.TrimSpace(s.Addr().String()+"\n"+page))
	}
	if err != nil {
		return err
	}
	return s.Run(cmd.Context())
}

// listening is the JSON that says where the server listens.
type listening struct {
	Addr string `json:"addr"`
	HTTP string `json:"http,omitempty"`
}
