package arch

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linked are the modules whose code programs that import the library may contain. The modules that go.mod does not list
// directly are requirements of the others.
var linked = []string{
	"github.com/ishidawataru/sctp",
	"github.com/pion/logging",
	"github.com/pion/randutil",
	"github.com/pion/sctp",
	"github.com/pion/transport/v5",
	"golang.org/x/sys",
}

// observers are packages that a program imports besides the library, in order to use heavy libraries.
var observers = []string{"metrics", "tracing"}

// libraryPackages returns the packages that others can import, except the observers.
func libraryPackages(t *testing.T) []string {
	t.Helper()
	var packages []string
	for _, f := range tree(t) {
		p := f.Package()
		if under(p, programs) || under(p, observers) || slices.Contains(strings.Split(p, "/"), "internal") {
			continue
		}
		packages = append(packages, "./"+p)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// modulesLinked lists the third-party modules that packages need on a system.
func modulesLinked(t *testing.T, system string, packages ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"}, packages...)...)
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS="+system)
	out, err := command.Output()
	require.NoError(t, err)
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	return slices.Compact(modules)
}

// TestLibraryLinksFewModules: go list -deps of the library shows no framework for commands, metrics or terminals.
func TestLibraryLinksFewModules(t *testing.T) {
	packages := libraryPackages(t)
	require.Contains(t, packages, "./.")
	require.Contains(t, packages, "./rsocket")
	for _, system := range []string{"linux", "windows", "darwin", "freebsd"} {
		require.Subset(t, linked, modulesLinked(t, system, packages...), system)
	}
	require.Equal(t, linked, modulesLinked(t, "linux", packages...))
	require.Contains(t, modulesLinked(t, "linux", "./cmd/iwarp"), "github.com/spf13/cobra", "that the test can fail")
}
