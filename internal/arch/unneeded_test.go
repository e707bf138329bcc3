package arch

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unneeded are modules for programs. No package of the library needs them, however indirectly.
var unneeded = []string{"charm.land/bubbletea/v2", "charm.land/lipgloss/v2", "github.com/spf13/cobra", "github.com/spf13/pflag", "google.golang.org/grpc"}

// TestTheLibraryDoesNotNeedWhatProgramsNeed asks Go what the packages of the library are built from.
func TestTheLibraryDoesNotNeedWhatProgramsNeed(t *testing.T) {
	packages := make(map[string]bool)
	for _, f := range tree(t) {
		if !f.IsTest() && !under(f.Package(), programs) && !under(f.Package(), []string{"internal", "bench"}) {
			packages["./"+f.Package()] = true
		}
	}
	require.Contains(t, packages, "./.")
	args := []string{"list", "-deps"}
	for p := range packages {
		args = append(args, p)
	}
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = root
	out, err := command.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/pion/sctp\n", "what it does need is listed")
	for line := range strings.Lines(string(out)) {
		require.False(t, under(strings.TrimSpace(line), unneeded), "the library needs %s", line)
	}
}
