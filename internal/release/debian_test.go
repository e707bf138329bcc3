package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionsOfDebian(t *testing.T) {
	require.Equal(t, "0.1.0", debianVersion("v0.1.0"))
	require.Equal(t, "1.0.0~rc.1-x", debianVersion("v1.0.0-rc.1-x"))
}

func TestArArchive(t *testing.T) {
	got := arArchive([]file{{name: "a", data: []byte("odd")}, {name: "control.tar.gz", data: []byte("even")}}, at)
	require.Equal(t, "!<arch>\n"+
		"a               1767323046  0     0     100644  3         `\nodd\n"+
		"control.tar.gz  1767323046  0     0     100644  4         `\neven", string(got))
}

// TestDebianPackage: Debian's own programs read the package, and install it.
func TestDebianPackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no dpkg-deb")
	}
	r := standInRelease(t, target{"linux", "amd64"})
	require.NoError(t, r.make(t.Context()))
	deb := filepath.Join(r.out, "iwarp_0.2.0~rc.1_amd64.deb")
	run := func(name string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		require.NoError(t, err, "%s %q: %s", name, args, out)
		return string(out)
	}
	require.Contains(t, run("dpkg-deb", "--info", deb), "Version: 0.2.0~rc.1\n")
	require.Equal(t, "amd64\n", run("dpkg-deb", "--field", deb, "Architecture"))
	account, _, _ := strings.Cut(strings.TrimPrefix(run("dpkg-deb", "--field", deb, "Homepage"), "https://github.com/"), "/")
	require.Contains(t, run("dpkg-deb", "--field", deb, "Maintainer"), "<"+account+"@users.noreply.github.com>", "the address belongs to the project")

	root := filepath.Join(t.TempDir(), "root")
	run("dpkg-deb", "--extract", deb, root)
	for _, name := range []string{
		"bin/iwarp", "share/man/man1/iwarp.1.gz", "share/bash-completion/completions/iwarp", "share/zsh/vendor-completions/_iwarp",
		"share/fish/vendor_completions.d/iwarp.fish", "share/doc/iwarp/copyright", "share/doc/iwarp/changelog.gz", "share/doc/iwarp/README.md",
	} {
		require.FileExists(t, filepath.Join(root, "usr", filepath.FromSlash(name)))
	}
	require.Equal(t, "v0.2.0-rc.1 1234abcd 2026-01-02T03:04:06Z", run(filepath.Join(root, "usr", "bin", "iwarp"), "version"))
	control := filepath.Join(t.TempDir(), "control")
	run("dpkg-deb", "--control", deb, control)
	sums, err := os.ReadFile(filepath.Join(control, "md5sums"))
	require.NoError(t, err)
	require.Equal(t, 8, strings.Count(string(sums), "  usr/"))
	check := exec.CommandContext(t.Context(), "md5sum", "--check", "--strict", filepath.Join(control, "md5sums"))
	check.Dir = root
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)

	if os.Geteuid() != 0 {
		t.Skip("not root, so that dpkg cannot install it")
	}
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin") // dpkg requires programs of root's PATH, which root may lack here
	system := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(system, "var", "lib", "dpkg"), 0o777))
	run("dpkg", "--root="+system, "--log=/dev/null", "--install", deb)
	require.Empty(t, run("dpkg", "--root="+system, "--verify", "iwarp"))
	run("dpkg", "--root="+system, "--log=/dev/null", "--purge", "iwarp")
	require.NoFileExists(t, filepath.Join(system, "usr", "bin", "iwarp"))
}
