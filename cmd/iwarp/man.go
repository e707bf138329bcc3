package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// manCommand writes the manual pages, for packages: they go to share/man/man1. SOURCE_DATE_EPOCH is their date.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "write the manual pages of all commands", Args: cli.Args(1, 1), Hidden: true,
		Long: `Writes a manual page for each command: iwarp.1, iwarp-ping.1 and so on. In a package they belong into share/man/man1.
Set SOURCE_DATE_EPOCH to make the same pages each time.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "iwarp " + versionOf().Version, Manual: "iwarp"}, args[0])
		},
	}
}
