package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// version is that of a release, which the linker sets: -ldflags "-X main.version=v0.1.0". Without it the version is that of
// the module, as go install github.com/goiwarp/iwarp/cmd/iwarp@VERSION records it.
var version string

// A stamp says what the program was built from.
type stamp struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"` // what was built differs from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionOf() stamp {
	b, _ := debug.ReadBuildInfo()
	return stampOf(version, b)
}

// stampOf puts together what the linker and the build say; b may be nil.
func stampOf(linked string, b *debug.BuildInfo) stamp {
	s := stamp{Version: linked, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b != nil {
		if s.Version == "" {
			s.Version = b.Main.Version
		}
		for _, v := range b.Settings {
			switch v.Key {
			case "vcs.revision":
				s.Commit = v.Value
			case "vcs.time":
				s.Time = v.Value
			case "vcs.modified":
				s.Modified = v.Value == "true"
			}
		}
	}
	if s.Version == "" {
		s.Version = "(devel)"
	}
	return s
}

func (s stamp) String() string {
	text := fmt.Sprintf("iwarp %s %s %s", s.Version, s.Go, s.Platform)
	if s.Commit == "" {
		return text
	}
	text += "\ncommit " + s.Commit
	if s.Time != "" {
		text += " of " + s.Time
	}
	if s.Modified {
		text += ", with changes"
	}
	return text
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "print the version", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(versionOf())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionOf())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
