package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// openTerminal returns both ends of a pseudo-terminal of 80 columns and 24 lines: the one of a program, and the one of its user.
func openTerminal(t *testing.T) (program, user *os.File) {
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	raw, err := user.SyscallConn()
	require.NoError(t, err)
	var number int
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		require.NoError(t, err)
		require.NoError(t, unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	}))
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return program, user
}

var red = regexp.MustCompile(`\x1b\[([0-9]*;)*31[;m]`)

// TestTopOnATerminal draws, follows keys, says that the process has gone, and leaves the terminal as it was.
func TestTopOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	for _, c := range []struct {
		key, noColour string
		status        int
	}{{"q", "", cli.Done}, {"\x03", "yes", cli.Interrupted}} {
		page, _, gone := writing(t)
		t.Setenv("NO_COLOR", c.noColour)
		program, user := openTerminal(t)
		before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
		require.NoError(t, err)
		var screen, errs watch
		go func() { _, _ = io.Copy(&screen, user) }() // it ends with the terminal
		status := make(chan int, 1)
		go func() {
			status <- cli.Main(t.Context(), rootCommand(), []string{"top", "--interval", "200ms", page}, cli.Streams{In: program, Out: program, Err: &errs})
		}()
		screen.waitFor(t, "1 RNIC, 2 QPs")
		_, err = user.WriteString("?")
		require.NoError(t, err)
		screen.waitFor(t, "reverse the order")
		gone()
		screen.waitFor(t, "connection refused; trying again")
		require.Equal(t, c.noColour == "", red.MatchString(screen.String()), "errors are red, unless NO_COLOR is set")
		_, err = user.WriteString(c.key)
		require.NoError(t, err)
		require.Equal(t, c.status, <-status, errs.String())
		after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
		require.NoError(t, err)
		require.Equal(t, before, after)
		screen.waitFor(t, "\x1b[?1049l") // out of the alternate screen
	}
}
