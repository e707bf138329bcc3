package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/internal/hostile/attack"
	"github.com/goiwarp/iwarp/internal/hostile/drive"
)

// attacked runs the attackers until ctx ends, and returns what came of it.
func (v *victim) attacked(ctx context.Context, o options) (*drive.Tally, error) {
	what := drive.Options{Addrs: v.addrs, Seed: o.seed, N: o.n, At: v.told, Parts: o.parts, Pause: o.pause, MaxGap: o.maxGap}
	if o.together {
		return drive.Run(ctx, what)
	}
	return attackFromAProcess(ctx, what, o.time)
}

// attackFromAProcess starts this program again. It is told what to do by its arguments, and prints its tally.
func attackFromAProcess(ctx context.Context, what drive.Options, d time.Duration) (*drive.Tally, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-child", string(arg), "-for", d.String(), "-seed", strconv.FormatUint(what.Seed, 10))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // it ends with this process
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // nothing was written
	// It ends, and prints its tally, when its stdin does; the delay is for one that does not.
	cmd.WaitDelay = time.Minute
	cmd.Cancel = func() error {
		_ = in.Close()
		return os.ErrProcessDone // that ctx has ended is no error of the attackers
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	t := &drive.Tally{}
	return t, json.NewDecoder(bytes.NewReader(out)).Decode(t)
}

// attackFromHere runs in that process. It ends when its parent ends, because the parent's end of stdin is closed then.
func attackFromHere(ctx context.Context, w io.Writer, o options) error {
	var what drive.Options
	if err := json.Unmarshal([]byte(o.child), &what); err != nil {
		return err
	}
	if len(what.Addrs) == 0 || what.Addrs[attack.TCP] == "" {
		return errors.New("-child is for the program itself")
	}
	if err := lowerPriority(); err != nil {
		fmt.Fprintln(os.Stderr, "hostile: the attackers have the priority of their target:", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.time)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	t, err := drive.Run(ctx, what)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(t)
}
