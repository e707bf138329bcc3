package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// standIn is a module that builds quickly, instead of ours. Its command supports what a release calls.
var standIn = map[string]string{
	"go.mod":       "module github.com/goiwarp/iwarp\n\ngo 1.26.0\n",
	"README.md":    "# iwarp\n",
	"CHANGELOG.md": "# Changelog\n",
	"LICENSE":      "Apache License\n",
	"cmd/iwarp/main.go": `package main

import "os"

var version, commit, commitTime string

func main() {
	switch os.Args[1] {
	case "version":
		os.Stdout.WriteString(version + " " + commit + " " + commitTime)
	case "completion":
		os.Stdout.WriteString("complete iwarp in " + os.Args[2])
	case "man":
		os.Mkdir(os.Args[2], 0o777)
		os.WriteFile(os.Args[2]+"/iwarp.1", []byte("IWARP(1) "+os.Getenv("SOURCE_DATE_EPOCH")), 0o666)
	}
}
`,
}

var at = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)

// standInRelease returns a release of standIn, in directories of its own.
func standInRelease(t *testing.T, targets ...target) *release {
	t.Helper()
	root := t.TempDir()
	for name, text := range standIn {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	return &release{root: root, out: filepath.Join(t.TempDir(), "out"), version: "v0.2.0-rc.1", commit: "1234abcd", time: at, targets: targets}
}

// contents reads all files of a directory.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
	}
	return files
}

// untar returns the files of a tar.gz, and lists faulty headers.
func untar(t *testing.T, data []byte) (files map[string][]byte, wrong []string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	require.True(t, z.ModTime.IsZero())
	files = make(map[string][]byte)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, wrong
		}
		require.NoError(t, err)
		mode := int64(0o644)
		if h.Typeflag == tar.TypeDir || strings.HasSuffix(h.Name, "/iwarp") && !strings.Contains(h.Name, "completion") {
			mode = 0o755
		}
		if h.Mode != mode || h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(at) {
			wrong = append(wrong, fmt.Sprintf("%+v", h))
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name], err = io.ReadAll(r)
			require.NoError(t, err)
		}
	}
}

func unzip(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	files := make(map[string][]byte)
	for _, f := range r.File {
		require.True(t, f.Modified.Equal(at), f.Name)
		part, err := f.Open()
		require.NoError(t, err)
		files[f.Name], err = io.ReadAll(part)
		require.NoError(t, err)
	}
	return files
}

func TestRelease(t *testing.T) {
	targets := []target{{"linux", "amd64"}, {"windows", "amd64"}}
	r, again := standInRelease(t, targets...), standInRelease(t, targets...)
	t.Setenv("SOURCE_DATE_EPOCH", "1") // the pages have that of the release
	require.NoError(t, r.make(t.Context()))
	files := contents(t, r.out)
	base := "iwarp_0.2.0-rc.1_"
	require.Equal(t, []string{
		sumsName, base + "linux_amd64.cdx.json", base + "linux_amd64.tar.gz", base + "windows_amd64.cdx.json", base + "windows_amd64.zip", "iwarp_0.2.0~rc.1_amd64.deb",
	}, slices.Sorted(maps.Keys(files)))

	t.Run("archives", func(t *testing.T) {
		linux, wrong := untar(t, files[base+"linux_amd64.tar.gz"])
		require.Empty(t, wrong)
		windows := unzip(t, files[base+"windows_amd64.zip"])
		for _, name := range []string{
			"README.md", "CHANGELOG.md", "LICENSE", "LICENSES-OF-DEPENDENCIES", "man/man1/iwarp.1",
			"completions/iwarp.bash", "completions/_iwarp", "completions/iwarp.fish", "completions/iwarp.ps1",
		} {
			require.NotEmpty(t, linux[base+"linux_amd64/"+name], name)
			require.Equal(t, linux[base+"linux_amd64/"+name], windows[base+"windows_amd64/"+name], name)
		}
		require.Len(t, linux, 10)
		require.Len(t, windows, 10)
		require.Equal(t, fmt.Sprint("IWARP(1) ", at.Unix()), string(linux[base+"linux_amd64/man/man1/iwarp.1"]))
		require.True(t, bytes.HasPrefix(linux[base+"linux_amd64/iwarp"], []byte("\x7fELF")))
		require.True(t, bytes.HasPrefix(windows[base+"windows_amd64/iwarp.exe"], []byte("MZ")))
		require.NotContains(t, string(linux[base+"linux_amd64/iwarp"]), r.root, "the directory of the build")
	})
	t.Run("sums", func(t *testing.T) {
		lines := strings.Split(strings.TrimSuffix(string(files[sumsName]), "\n"), "\n")
		require.Len(t, lines, len(files)-1)
		for _, l := range lines {
			sum, name, ok := strings.Cut(l, "  ")
			require.True(t, ok, l)
			require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(files[name])), sum, name)
		}
	})
	t.Run("again, elsewhere", func(t *testing.T) {
		require.NoError(t, again.make(t.Context()))
		require.Equal(t, files, contents(t, again.out))
	})
	t.Run("into files that are there", func(t *testing.T) {
		require.ErrorContains(t, r.make(t.Context()), "is not empty")
	})
}

func TestReleaseOfWhatDoesNotBuild(t *testing.T) {
	r := standInRelease(t, target{"linux", "amd64"})
	require.NoError(t, os.WriteFile(filepath.Join(r.root, "cmd", "iwarp", "main.go"), []byte("package main; func main() { missing() }"), 0o666))
	require.ErrorContains(t, r.make(t.Context()), "undefined: missing")
	require.Empty(t, contents(t, r.out))
}

func TestFlagsOfARelease(t *testing.T) {
	for _, c := range []struct{ version, targets, at, want string }{
		{"0.1.0", "linux/amd64", "", "with a v in front"},
		{"v0.1", "linux/amd64", "", "semantic version"},
		{"v0.01.0", "linux/amd64", "", "semantic version"},
		{"v0.1.0", "linux/mips", "", `"linux/mips" is none of linux/amd64,`},
		{"v0.1.0", "", "", `"" is none of`},
		{"v0.1.0", "linux/arm64", "today", "-time: parsing time"},
	} {
		r := release{version: c.version}
		require.ErrorContains(t, r.parse(c.targets, c.at), c.want)
	}
	r := release{version: "v1.20.0-rc.1"}
	require.NoError(t, r.parse(everyTarget, "2026-01-02T03:04:06Z"))
	require.Len(t, r.targets, 8)
	require.Equal(t, at, r.time)
}

// TestDescribe: the commit and its time come from Git, and a checkout with changes is refused.
func TestDescribe(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	r := standInRelease(t)
	t.Setenv("SOURCE_DATE_EPOCH", "")
	for _, v := range []string{"GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"} {
		t.Setenv(v, "2026-01-02T03:04:06Z")
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "all"}} {
		_, err := r.git(t.Context(), args...)
		require.NoError(t, err)
	}
	r.commit, r.time = "", time.Time{}
	require.NoError(t, r.describe(t.Context()))
	require.Len(t, r.commit, 40)
	require.True(t, r.time.Equal(at))

	require.NoError(t, os.WriteFile(filepath.Join(r.root, "README.md"), []byte("changed"), 0o666))
	r.commit = ""
	require.ErrorContains(t, r.describe(t.Context()), "the checkout has changes")
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	r.commit, r.time = "abcd", time.Time{}
	require.NoError(t, r.describe(t.Context()))
	require.Equal(t, int64(86400), r.time.Unix())
	t.Setenv("SOURCE_DATE_EPOCH", "now")
	r.time = time.Time{}
	require.ErrorContains(t, r.describe(t.Context()), `SOURCE_DATE_EPOCH "now"`)
}
