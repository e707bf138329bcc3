package main

import (
	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/top"
)

// The groups of commands in the help.
const (
	tryGroup      = "try"
	diagnoseGroup = "diagnose"
	measureGroup  = "measure"
)

// commands are all commands of iwarp, in their groups. A new command needs a line here, and a file.
var commands = []struct {
	group string
	make  func() *cobra.Command
}{
	{tryGroup, demoCommand},
	{tryGroup, serveCommand},
	{tryGroup, putCommand},
	{tryGroup, getCommand},
	{diagnoseGroup, pingCommand},
	{diagnoseGroup, dumpCommand},
	{diagnoseGroup, top.Command},
	{diagnoseGroup, infoCommand},
	{measureGroup, perfCommand},
	{measureGroup, attackCommand},
	{"", versionCommand},
	{"", manCommand},
	{"", statusTopic},
}

const rootHelp = `iwarp is the tool of github.com/goiwarp/iwarp: RDMA over TCP and SCTP, in user space.

Exit status: 0 done, 1 failed, 2 called wrongly, 3 no connection. See iwarp help exit-status.`

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "iwarp", Short: "RDMA over TCP and SCTP, in user space", Long: rootHelp, Args: cli.NoArgs,
		Example: `  iwarp demo                        copies a file between two processes by RDMA
  iwarp ping -s & sleep 1; iwarp ping -C 5 localhost
  iwarp info                        what this machine supports, and lacks`,
		Version: versionOf().Version,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			if err := cmd.Help(); err != nil {
				return err
			}
			return cli.Usagef("a command is missing")
		},
	}
	root.AddGroup(
		&cobra.Group{ID: tryGroup, Title: "Try it, and copy files:"},
		&cobra.Group{ID: diagnoseGroup, Title: "Find faults:"},
		&cobra.Group{ID: measureGroup, Title: "Measure and test:"},
	)
	for _, c := range commands {
		cmd := c.make()
		cmd.GroupID = c.group
		root.AddCommand(cmd)
	}
	return root
}

// statusTopic returns a page of the help.
func statusTopic() *cobra.Command {
	return &cobra.Command{
		Use: "exit-status", Short: "what the exit status of each command means",
		Long: "The exit status of all commands:\n\n" + cli.StatusHelp + `

An error is one line on the standard error, which says what to do. With --json it is also an object on the standard
output, {"error": ..., "status": ...}, so that what is there is JSON in any case. Where a target was missed, the
output says which one, and there is no such object.`,
	}
}
