package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// standIn makes a repository with a module that builds quickly. Its command is a stand-in for ours.
func standIn(t *testing.T, program string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "cmd", "iwarp")
	require.NoError(t, os.MkdirAll(dir, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module "+module+"\n\ngo 1.26.0\n"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o666))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "all"}} {
		_, err := run(t.Context(), nil, "git", append([]string{"-C", root}, args...)...)
		require.NoError(t, err)
	}
	return root
}

func TestInstall(t *testing.T) {
	root := standIn(t, `package main

import (
	"fmt"
	"runtime/debug"
)

func main() {
	b, _ := debug.ReadBuildInfo()
	fmt.Println("iwarp", b.Main.Version, "of a test")
}
`)
	printed, err := install(t.Context(), root, false)
	require.NoError(t, err)
	require.Equal(t, "iwarp "+version+" of a test\n", printed)
}

func TestInstallCanFail(t *testing.T) {
	_, err := install(t.Context(), standIn(t, "package main\n\nfunc main() { println() }\n"), false)
	require.ErrorContains(t, err, "and not "+version)
	_, err = install(t.Context(), standIn(t, "package other\n"), false)
	require.ErrorContains(t, err, "is not a main package")
	_, err = install(t.Context(), t.TempDir(), false)
	require.ErrorContains(t, err, "git clone")
}
