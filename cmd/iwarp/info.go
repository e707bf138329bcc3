package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/machine"
)

func infoCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "info", Short: "show what this machine supports, what is missing, and how to get it", Args: cli.NoArgs,
		Long: `Shows what matters to the library on this machine: its limits, how fast the processor computes digests, and the
available transports. A line below each missing one says how to get it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := machine.Facts(cmd.Context())
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(struct {
					Version stamp          `json:"version"`
					Facts   []machine.Fact `json:"facts"`
				}{versionOf(), facts})
			}
			return printFacts(cmd.OutOrStdout(), facts)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printFacts prints a table, with a heading for each group.
func printFacts(w io.Writer, facts []machine.Fact) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	group := ""
	for _, f := range facts {
		if f.Group != group {
			group = f.Group
			fmt.Fprintln(t, group)
		}
		fmt.Fprintf(t, "  %s\t%s\n", f.Name, f.Value)
		if f.Remedy != "" {
			fmt.Fprintf(t, "  \t-> %s\n", f.Remedy)
		}
	}
	return t.Flush()
}
