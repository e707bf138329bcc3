package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goiwarp/iwarp/interop/matrix"
)

// A reporter prints what the guest reports about its cases, as it arrives.
type reporter struct {
	*lab
	kernel string
	share  string
	cases  []*matrix.Case
	byName map[string]*matrix.Case // cases that have not ended

	running string // the case that has begun and not ended
	partial string // a line that is not complete
	read    int64  // octets of the results so far
}

// cameUp reports whether the guest has started its own program.
func (r *reporter) cameUp() bool {
	_, err := os.Stat(filepath.Join(r.share, "guest.log"))
	return err == nil
}

// follow reports until the guest has ended, and returns how it ended.
func (r *reporter) follow(ctx context.Context, ended <-chan error) (end, err error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := r.poll(ctx); err != nil {
				return nil, err
			}
		case end := <-ended:
			return end, r.poll(ctx)
		}
	}
}

// poll reports the lines that have arrived since the last call.
func (r *reporter) poll(ctx context.Context) error {
	f, err := os.Open(filepath.Join(r.share, "results"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	if _, err := f.Seek(r.read, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadString('\n')
		r.read += int64(len(line))
		r.partial += line
		if err != nil {
			return nil // the end, for now
		}
		var res matrix.Result
		if err := json.Unmarshal([]byte(r.partial), &res); err != nil {
			return fmt.Errorf("results of the guest: %w", err)
		}
		r.partial = ""
		r.running = res.Name
		if res.Done {
			r.report(ctx, res)
		}
	}
}

// report prints one line, and where to find details if the case failed.
func (r *reporter) report(ctx context.Context, res matrix.Result) {
	c := r.byName[res.Name]
	delete(r.byName, res.Name)
	r.running = ""
	dir := filepath.Join(r.share, "cases", res.Name)
	passed, verdict := r.judge(ctx, res, c, dir)
	if passed {
		r.passed++
	} else {
		r.failed++
		verdict += " (see " + dir + ")"
	}
	if res.Scale >= 1.05 {
		verdict += fmt.Sprintf("; limits x%.1f", res.Scale)
	}
	fmt.Printf("%-36s %-9s %-5s %-5s %6.1f s  %s\n", res.Name, c.Role, r.kernel, c.Variant(), res.Took.Seconds(), verdict)
	for _, n := range res.Notes {
		fmt.Printf("    %s\n", n)
	}
}

// judge reports whether a case has passed, according to the guest and to its captures; with a
// sabotage, whether it was detected.
func (r *reporter) judge(ctx context.Context, res matrix.Result, c *matrix.Case, dir string) (passed bool, verdict string) {
	if s := r.sabotageOf(c); s != nil {
		return s.judge(checkWire(dir, c))
	}
	if res.Passed {
		if err := checkCaptures(ctx, dir, c); err != nil {
			res.Passed, res.Why = false, err.Error()
		}
	}
	if !res.Passed {
		return false, "FAILED: " + res.Why
	}
	return true, "passed"
}

// reportMissing fails every case that the guest did not finish.
func (r *reporter) reportMissing(end error) {
	why := "the guest stopped before"
	if end != nil {
		why = end.Error()
	}
	if end != nil && len(r.byName) == 0 {
		r.failed++
		fmt.Printf("%-36s %-9s %-5s FAILED: %s (see %s)\n", "the guest", "", r.kernel, why, r.share)
	}
	for _, c := range r.cases {
		if r.byName[c.Name] == nil {
			continue
		}
		r.failed++
		state := "never began"
		if c.Name == r.running {
			state = "did not end"
		}
		fmt.Printf("%-36s %-9s %-5s FAILED: %s: %s (see %s)\n", c.Name, c.Role, r.kernel, state, why, r.share)
	}
}
