package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// The linker sets these for a release: -ldflags "-X main.version=v0.1.0". The default of version is the version of the module, as
// go install github.com/goiwarp/iwarp/cmd/iwarp@VERSION records it; the defaults of the others are what Go records in a clone.
var version, commit, commitTime string

// A stamp identifies the source from which the program was built.
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
	return stampOf(stamp{Version: version, Commit: commit, Time: commitTime}, b)
}

// stampOf adds the information of the build to that of the linker; b may be nil.
func stampOf(s stamp, b *debug.BuildInfo) stamp {
	s.Go, s.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	if b == nil {
		b = &debug.BuildInfo{}
	}
	s.Version = cmp.Or(s.Version, b.Main.Version, "(devel)")
	if s.Commit != "" {
		return s
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
