package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/interop/matrix"
	"github.com/goiwarp/iwarp/interop/powercut"
)

// sideBySide is how many machines run at once: each spends half of its time waiting.
const sideBySide = 2

// diskOctets is enough for a file system and the target's file.
const diskOctets = 32 << 20

// A power run boots machines, writes records to them, and cuts their power.
type power struct {
	*lab
	image     *slimImage
	initramfs string
	empty     []byte // a disk

	mu   sync.Mutex
	left int // cuts
}

// runPower cuts the power of machines, or lets their disks fail, as the flags say.
func (l *lab) runPower(ctx context.Context) error {
	p := &power{lab: l, left: l.cuts, initramfs: filepath.Join(l.out, "initramfs")}
	unlock, err := l.lock(ctx, l.out)
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.prepare(ctx); err != nil {
		return err
	}
	var errs []error
	if l.faults {
		errs = append(errs, p.runFaults(ctx))
	}
	if l.creations > 0 {
		errs = append(errs, p.runCreations(ctx))
	}
	switch {
	case l.cuts > 0 && l.table == matrix.NVMe:
		errs = append(errs, p.runNVMeCuts(ctx))
	case l.cuts > 0:
		errs = append(errs, p.runCuts(ctx))
	}
	return errors.Join(errs...)
}

// runCuts cuts the power as often as the flags say. It reports an error if records were
// lost, or, with a sabotage, if none were, because the check must notice the sabotage.
func (p *power) runCuts(ctx context.Context) error {
	l := p.lab
	if err := p.buildInitramfs(ctx, cutModules); err != nil {
		return err
	}
	began := time.Now()
	var machines []*machine
	for i := range min(sideBySide, l.cuts) {
		m, err := newMachine(p, i)
		if err != nil {
			return err
		}
		defer m.requester.Close() //nolint:errcheck // an error only means that connections were open
		machines = append(machines, m)
	}
	err := p.runMachines(ctx, machines)
	acknowledged, lost := 0, 0
	for _, m := range machines {
		a, l := m.requester.Records()
		acknowledged, lost = acknowledged+a, lost+l
	}
	cuts := l.cuts - p.left
	fmt.Printf("%d cuts, %d acknowledged records, %d lost records (sabotage %s, seed %d, %.1f s per cut)\n",
		cuts, acknowledged, lost, l.sabotage, l.seed, time.Since(began).Seconds()/float64(max(cuts, 1)))
	switch {
	case err != nil:
		return err
	case acknowledged == 0:
		return errors.New("no record was acknowledged")
	case lost > 0 && l.sabotage == powercut.Honest:
		return errors.New("records were lost")
	case lost == 0 && l.sabotage != powercut.Honest:
		return errors.New("the sabotage was not noticed")
	}
	return nil
}

func (p *power) prepare(ctx context.Context) (err error) {
	if err := prepareHost(ctx, p.install); err != nil {
		return err
	}
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return err
	}
	if p.image, err = p.slim(ctx); err != nil {
		return err
	}
	p.empty, err = emptyDisk(ctx, p.out, diskOctets)
	return err
}

// runMachines runs all machines until no cut is left, and then each once more.
func (p *power) runMachines(ctx context.Context, machines []*machine) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error)
	for _, m := range machines {
		go func() {
			err := m.run(ctx)
			if err != nil {
				cancel() // the others need not continue
			}
			errs <- err
		}()
	}
	var all []error
	for range machines {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (m *machine) run(ctx context.Context) error {
	for m.take() {
		if err := m.cut(ctx); err != nil {
			return fmt.Errorf("machine %d: %w", m.number, err)
		}
	}
	err := m.live(ctx, 0)
	m.tell()
	return err
}

// take takes one of the remaining cuts.
func (p *power) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		return false
	}
	p.left--
	return true
}

// checkPower checks the flags.
func (c *config) checkPower() error {
	known := powercut.Sabotages
	if c.creations > 0 {
		known = powercut.CreationSabotages
	}
	switch {
	case c.table == matrix.NVMe && (c.creations > 0 || c.faults):
		return errors.New("-creations and -faults are not for -nvme")
	case c.table == matrix.NVMe && c.sabotage == powercut.Async:
		return errors.New("the sabotage async is not for -nvme")
	case c.creations > 0 && c.cuts > 0:
		return errors.New("-power and -creations are two runs")
	case c.sabotage != powercut.Honest && c.cuts == 0 && c.creations == 0:
		return errors.New("-sabotage is not for -faults alone")
	case !slices.Contains(known, c.sabotage):
		return fmt.Errorf("no sabotage %q, only %s", c.sabotage, strings.Join(known, ", "))
	}
	if c.seed == 0 {
		c.seed = uint64(time.Now().UnixNano())
	}
	return nil
}
