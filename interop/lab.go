package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/interop/matrix"
	"github.com/goiwarp/iwarp/interop/pace"
)

// A lab runs cases and counts their outcomes.
type lab struct {
	config
	began          time.Time
	pace           *pace.Gauge
	passed, failed int
}

// say prints what the lab is doing and how long it has been running.
func (l *lab) say(format string, args ...any) {
	fmt.Printf("# %4.0f s  %s\n", time.Since(l.began).Seconds(), fmt.Sprintf(format, args...))
}

func (l *lab) runAll(ctx context.Context) error {
	if err := prepareHost(ctx, l.install); err != nil {
		return err
	}
	unlock, err := l.lock(ctx, l.cache)
	if err != nil {
		return err
	}
	defer unlock()
	user, err := userland(ctx, l.cache, l.release, l.system())
	if err != nil {
		return err
	}
	l.say("userland of the guest is there")
	if err := l.clearOut(); err != nil {
		return err
	}
	for _, series := range l.kernels {
		k, err := buildKernel(ctx, l.cache, series)
		if err != nil {
			return err
		}
		l.say("kernel %s and siw are there", k.release)
		if err := l.runKernel(ctx, k, user); err != nil {
			return err
		}
	}
	return nil
}

// variants are the builds of siw.
var variants = []string{stock, withKnobs}

// outOf returns the folder in which the cases of one boot leave captures and logs.
func (l *lab) outOf(series, variant string) string { return filepath.Join(l.out, series+"-"+variant) }

// clearOut removes only what earlier runs have left: the folder may belong to the user.
func (l *lab) clearOut() error {
	for _, series := range allSeries() {
		for _, variant := range variants {
			if err := os.RemoveAll(l.outOf(series, variant)); err != nil {
				return err
			}
		}
	}
	return nil
}

// runKernel boots one kernel once for every siw variant that the cases need.
func (l *lab) runKernel(ctx context.Context, k *kernel, user string) error {
	initramfs := filepath.Join(k.dir, l.system().initramfs)
	if err := buildInitramfs(ctx, k, l.system(), user, initramfs); err != nil {
		return err
	}
	for _, variant := range variants {
		cases := l.selected(variant)
		if len(cases) == 0 {
			continue
		}
		out := l.outOf(k.series, variant)
		v := &vm{kernel: k, initramfs: initramfs, share: out, accel: l.accel, console: filepath.Join(out, "console.log"), pace: l.pace}
		if err := l.runBoot(ctx, v, variant, cases); err != nil {
			return err
		}
	}
	return nil
}

// chosen returns the cases that the flags select.
func (l *lab) chosen() []*matrix.Case {
	var cases []*matrix.Case
	table := matrix.TableOf(l.table).Cases
	for i := range table {
		if c := &table[i]; l.wants(c) {
			cases = append(cases, c)
		}
	}
	return cases
}

// selected returns the chosen cases that need one siw variant.
func (l *lab) selected(variant string) []*matrix.Case {
	return slices.DeleteFunc(l.chosen(), func(c *matrix.Case) bool { return c.Variant() != variant })
}

// list prints the names of the cases that the flags select.
func (l *lab) list(w io.Writer) {
	for _, c := range l.chosen() {
		fmt.Fprintf(w, "%-34s %-10s siw %s\n", c.Name, c.Role, c.Variant())
	}
}

// wants reports whether the flags select a case. Sabotages have their own cases.
func (l *lab) wants(c *matrix.Case) bool {
	if l.planted != nil {
		return l.sabotageOf(c) != nil
	}
	return (c.Core || !l.core) && c.Figures == l.figures && l.run.MatchString(c.Name)
}

// bootTime is more than the guest needs to boot, even without KVM. Like all limits it is meant for
// an idle machine: see package pace.
const bootTime = 90 * time.Second

// boots is how often a guest that does not start is booted: QEMU's emulation of two
// processors sometimes fails with kernels that patch their own code. A boot in which
// no case began says nothing about any case.
const boots = 4

func (l *lab) runBoot(ctx context.Context, v *vm, variant string, cases []*matrix.Case) error {
	overlay := ""
	if l.planted != nil {
		var err error
		if overlay, err = plant(ctx, l.planted, v.share); err != nil {
			return err
		}
	}
	if err := prepareShare(ctx, v.share, matrix.Job{Variant: variant, Table: l.table}, overlay, cases); err != nil {
		return err
	}
	limit := bootTime
	for _, c := range cases {
		limit += max(c.Limit, time.Minute)
	}
	r := &reporter{lab: l, kernel: v.kernel.series, share: v.share, cases: cases, byName: index(cases)}
	for n := 1; ; n++ {
		l.say("booting %s with siw %s for %d cases, limits x%.1f", v.kernel.release, variant, len(cases), l.pace.Scale())
		end, err := l.bootOnce(ctx, v, limit, r)
		if err != nil {
			return err
		}
		if r.cameUp() || n == boots || ctx.Err() != nil {
			r.reportMissing(end)
			return nil
		}
		l.say("the guest did not come up: %v", end)
		if err := os.Rename(v.console, fmt.Sprintf("%s.%d", v.console, n)); err != nil {
			return err
		}
	}
}

// bootOnce boots the guest and reports its cases. end is how the guest ended, nil if well.
func (l *lab) bootOnce(ctx context.Context, v *vm, limit time.Duration, r *reporter) (end, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- v.run(ctx, limit) }()
	born, stop := l.pace.Context(ctx, bootTime, fmt.Errorf("no sign of the guest within %v", bootTime))
	defer stop()
	defer context.AfterFunc(born, func() {
		if !r.cameUp() {
			cancel(context.Cause(born))
		}
	})()
	return r.follow(ctx, ended)
}

// prepareShare fills the guest's working folder, with programs that are built with the overlay, if
// there is one.
func prepareShare(ctx context.Context, dir string, job matrix.Job, overlay string, cases []*matrix.Case) error {
	if err := os.MkdirAll(filepath.Join(dir, "cases"), 0o755); err != nil {
		return err
	}
	for _, c := range cases {
		job.Cases = append(job.Cases, c.Name)
	}
	b, err := json.Marshal(job)
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "job.json"), b, 0o644),
		build(ctx, overlay, filepath.Join(dir, "guest"), "build", "github.com/goiwarp/iwarp/interop/guest"),
		build(ctx, overlay, filepath.Join(dir, "iwarp"), "build", "github.com/goiwarp/iwarp/cmd/iwarp"),
	)
	for name, program := range systems[job.Table].ours {
		err = errors.Join(err, buildProgram(ctx, overlay, filepath.Join(dir, name), program))
	}
	for _, c := range cases {
		for _, pkg := range c.Tests {
			err = errors.Join(err, build(ctx, overlay, filepath.Join(dir, path.Base(pkg)+".test"), "test", "-c", pkg))
		}
	}
	return err
}

// build builds a program that needs no files of the guest, with a go command.
func build(ctx context.Context, overlay, file, command string, args ...string) error {
	return buildIn(ctx, "", overlay, file, command, args...)
}

// buildIn is like build, in another directory; file must be absolute, or the directory empty.
func buildIn(ctx context.Context, dir, overlay, file, command string, args ...string) error {
	all := []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "go", command, "-o", file}
	if overlay != "" { // otherwise GOFLAGS may name one
		all = append(all, "-overlay", overlay)
	}
	return run(ctx, dir, "env", append(all, args...)...)
}

// buildProgram builds the command in a directory below the root of this module, which may belong to a nested module.
func buildProgram(ctx context.Context, overlay, file, dir string) error {
	root, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	return buildIn(ctx, filepath.Join(strings.TrimSpace(root), dir), overlay, file, "build", ".")
}

func index(cases []*matrix.Case) map[string]*matrix.Case {
	m := make(map[string]*matrix.Case)
	for _, c := range cases {
		m[c.Name] = c
	}
	return m
}
