package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

// childEnv makes the test binary run as the program itself, which starts its own executable.
const childEnv = "MESH_TEST_BE_MESH"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// beMesh makes children of the test run as the program. Without findings, their race detector would otherwise sleep for
// a second at their end.
func beMesh(t *testing.T) {
	t.Setenv(childEnv, "1")
	t.Setenv("GORACE", "atexit_sleep_ms=0")
}

func TestThreeProcesses(t *testing.T) {
	beMesh(t)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-n", "3", "-size", "5000"}, nil, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 7)
	for i, want := range []string{
		"phase processes set-ups attempts refused Writes verified pairs verified",
		"each connects to all 3 6 6 0 6 6",
		"keys are rotated meanwhile 3",
		"the old key is tried 3 0 6 6 0 0",
		"connections from before 3 0 0 0 6 6",
		"one is killed 2 0 0 0 2 2",
		"it is back 3 4",
	} {
		require.Contains(t, strings.Join(strings.Fields(lines[i]), " "), want)
	}
}

func TestTimeIsBounded(t *testing.T) {
	beMesh(t)
	began := time.Now()
	err := run(t.Context(), []string{"-n", "2", "-timeout", "1ms"}, nil, io.Discard)
	require.ErrorIs(t, err, errTimeout)
	require.Less(t, time.Since(began), 10*time.Second)
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-n", "1"}, {"-n", "65"}, {"-size", "0"}, {"-timeout", "0s"}, {"-what"}, {"more"}} {
		require.Error(t, run(t.Context(), args, nil, io.Discard), "%q", args)
	}
}

// TestCommandsThatMakeNoSense: they are answered, and the process goes on.
func TestCommandsThatMakeNoSense(t *testing.T) {
	start := command{Do: "start", Size: 100, Addr: "127.0.0.1:0", Keys: newGeneration(1, 2).of(0)}
	var in, out bytes.Buffer
	commandsIn := json.NewEncoder(&in)
	for _, c := range []command{{Do: "connect"}, start, start, {Do: "fly"}, {Do: "pass"}, {Do: "stop"}, {Do: "seen"}} {
		require.NoError(t, commandsIn.Encode(c))
	}
	require.NoError(t, obey(context.Background(), &in, &out))
	replies := json.NewDecoder(&out)
	for _, want := range []string{"no sense", "", "no sense", "no sense", "no churn", "no churn", ""} {
		var r reply
		require.NoError(t, replies.Decode(&r))
		if want == "" {
			require.Empty(t, r.Err)
		} else {
			require.Contains(t, r.Err, want)
		}
	}
}

// TestInputThatEndsMeanwhile: it ends the process's work, since the program that started the process may have been
// killed.
func TestInputThatEndsMeanwhile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, w := io.Pipe()
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- obey(ctx, in, &out) }()
	for _, c := range []command{
		{Do: "start", Size: 100, Addr: "127.0.0.1:0", Keys: newGeneration(1, 2).of(0)},
		{Do: "connect", Addrs: []string{"", "127.0.0.1:0"}}, // it tries that address until it is there
	} {
		require.NoError(t, json.NewEncoder(w).Encode(c))
	}
	require.NoError(t, w.Close())
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
		cancel()
		t.Log(<-ended)
	}
	var r reply
	require.NoError(t, json.NewDecoder(&out).Decode(&r))
	require.Empty(t, r.Err)
}

// TestWrongDataAreNoticed: the process that they were written to notices them and reports them.
func TestWrongDataAreNoticed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	g := newGeneration(1, 2)
	var all [2]*process
	var addrs []string
	for i := range all {
		p, r, err := start(ctx, &command{Self: i, Size: 100, Addr: "127.0.0.1:0", Keys: g.of(i)})
		require.NoError(t, err)
		defer func() { require.NoError(t, p.rnic.Close()) }()
		all[i], addrs = p, append(addrs, r.Addr)
	}
	from, to := all[0], all[1]
	_, err := from.connect(ctx, &command{Addrs: addrs})
	require.NoError(t, err)
	seen := func() int {
		r, err := to.report(ctx, &command{Round: 1})
		require.NoError(t, err)
		return r.Seen[0]
	}
	_, err = from.write(ctx, &command{Round: 1})
	require.NoError(t, err)
	require.Equal(t, 1, seen())
	from.self = 7 // it writes what another process would
	_, err = from.write(ctx, &command{Round: 1})
	require.ErrorContains(t, err, "not what was written")
	require.Equal(t, 1, seen())
}

// TestExitStatus: help is no failure, and a wrong call has its own status.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"-h"}, 0}, {[]string{"--help"}, 0}, {[]string{"-nonsense"}, 2}, {[]string{"-n", "1"}, 2}} {
		err := run(t.Context(), c.args, nil, io.Discard)
		require.Equal(t, c.want, program.Status("mesh", err, io.Discard), "%q", c.args)
	}
}

// TestProcessThatDoesNotStart: the error is only the reason.
func TestProcessThatDoesNotStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := spawn(ctx, 0)
	require.Equal(t, context.Canceled, err)
}
