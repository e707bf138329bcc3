package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipesAreNotOpened: no call waits for the other end of a pipe.
func TestPipesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	h := opened(t, dir)
	opens := map[string]func() error{
		"read": func() error {
			_, err := h.fs.Open("pipe")
			return err
		},
		"write": func() error {
			_, err := h.fs.OpenFile("pipe", os.O_WRONLY, 0)
			return err
		},
		"empty": func() error {
			_, err := h.fs.Create("pipe")
			return err
		},
		"list": func() error {
			_, err := h.fs.ReadDir("pipe")
			return err
		},
	}
	for what, open := range opens {
		ended := make(chan error, 1)
		go func() { ended <- open() }()
		select {
		case err := <-ended:
			require.Error(t, err, what)
		case <-within(t).Done():
			t.Error(what, "waits")
		}
	}
}
