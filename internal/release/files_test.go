package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// goVersions matches the Go releases that a file names, without the patch number.
var goVersions = regexp.MustCompile(`(?m)(?:^go |golang:|go-version: ")(\d+\.\d+)`)

// TestOneReleaseOfGo: everything that builds programs uses the Go release of go.mod.
func TestOneReleaseOfGo(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		require.NoError(t, err)
		return string(text)
	}
	want := goVersions.FindStringSubmatch(read("go.mod"))[1]
	for _, name := range []string{"Dockerfile", ".github/workflows/ci.yml", ".github/workflows/release.yml"} {
		found := goVersions.FindAllStringSubmatch(read(name), -1)
		require.NotEmpty(t, found, name)
		for _, m := range found {
			require.Equal(t, want, m[1], "%s: %q", name, m[0])
		}
	}
}

// TestWorkflowsPinActions: a third-party action is named by its commit, since a tag may be moved.
func TestWorkflowsPinActions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		uses := regexp.MustCompile(`(?m)^.*\buses:.*$`).FindAllString(string(text), -1)
		require.NotEmpty(t, uses, file)
		for _, u := range uses {
			require.Regexp(t, `uses: [a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`, u, file)
		}
	}
}
