package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/interop/nbd"
	"github.com/goiwarp/iwarp/interop/powercut"
)

// createMost is the maximum number of files that a machine makes before its power is cut.
const createMost = 24

// createLimit is how long one boot may take.
const createLimit = 2 * time.Minute

// runCreations cuts the power of machines that make files. Files that were reported as made must
// exist, with their size; with a sabotage something must be missing.
func (p *power) runCreations(ctx context.Context) error {
	if err := p.buildInitramfs(ctx, cutModules); err != nil {
		return err
	}
	minix, err := emptyMinix(ctx, p.out, diskOctets)
	if err != nil {
		return err
	}
	systems := map[string][]byte{powercut.Ext4: p.empty, powercut.Minix: minix}
	order := []string{powercut.Ext4, powercut.Minix}
	if p.sabotage == powercut.NoNameSync {
		order = order[1:] // a sync of a file of ext4 makes its name durable
	}
	lot := rand.New(rand.NewPCG(p.seed, 2))
	made, lost := 0, 0
	for i := range p.creations {
		system := order[i%len(order)]
		disk := nbd.NewDisk(bytes.Clone(systems[system]), lot.Uint64())
		m, l, err := p.cutCreation(ctx, system, disk, 1+lot.IntN(createMost))
		if err != nil {
			return err
		}
		p.say("%-5s: %2d files made or grown, %2d lost", system, m, l)
		made, lost = made+m, lost+l
	}
	fmt.Printf("%d cuts, %d files made, %d lost (sabotage %s, seed %d)\n", p.creations, made, lost, p.sabotage, p.seed)
	switch {
	case made == 0:
		return errors.New("no file was made")
	case lost > 0 && p.sabotage == powercut.Honest:
		return errors.New("files were lost")
	case lost == 0 && p.sabotage != powercut.Honest:
		return errors.New("the sabotage was not noticed")
	}
	return nil
}

// cutCreation makes a machine create files, cuts its power when it has reported n of them, and
// then checks that they exist.
func (p *power) cutCreation(ctx context.Context, system string, disk *nbd.Disk, n int) (made, lost int, err error) {
	said, err := p.bootCreation(ctx, disk, fmt.Sprintf("-fs %s -create %d -sabotage %s", system, createMost, p.sabotage),
		func(said string) bool { return strings.Count(said, powercut.Created) >= n })
	if err != nil {
		return 0, 0, err
	}
	disk.Cut()
	want := filesSaid(said, powercut.Created)
	said, err = p.bootCreation(ctx, disk, fmt.Sprintf("-fs %s -list", system),
		func(said string) bool { return strings.Contains(said, powercut.Sign+" the end:") })
	if err != nil {
		return 0, 0, err
	}
	have := filesSaid(said, powercut.There)
	for name, size := range want {
		if have[name] < size {
			lost++
		}
	}
	return len(want), lost, nil
}

// bootCreation boots a machine, and cuts its power once the output on its console is enough.
func (p *power) bootCreation(ctx context.Context, disk *nbd.Disk, args string, enough func(said string) bool) (said string, err error) {
	q := &slimVM{
		image: p.image, initramfs: p.initramfs, accel: p.accel, disks: []nbd.Medium{disk},
		console: filepath.Join(p.out, "console-create"), args: args,
	}
	if err := os.WriteFile(q.console, nil, 0o600); err != nil {
		return "", err
	}
	ctx, cancel := p.pace.Context(ctx, createLimit, fmt.Errorf("the machine ran for more than %v (see %s)", createLimit, q.console))
	defer cancel()
	up, err := q.start(ctx)
	if err != nil {
		return "", err
	}
	defer q.kill()
	for {
		over := up.Err() != nil // checked first: earlier output counts
		b, err := os.ReadFile(q.console)
		switch {
		case err != nil:
			return "", err
		case enough(string(b)):
			q.kill()
			return string(b), nil
		case over:
			return "", fmt.Errorf("%w: %s (see %s)", context.Cause(up), lastWord(q.console), q.console)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// filesSaid finds the files that the output of a console reports with sign, and the last size of each.
// An incomplete line does not count.
func filesSaid(said, sign string) map[string]int64 {
	files := make(map[string]int64)
	for line := range strings.Lines(said) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), sign+" ")
		if !ok || !strings.HasSuffix(line, "\n") {
			continue
		}
		name, size, _ := strings.Cut(rest, " ")
		if n, err := strconv.ParseInt(size, 10, 64); err == nil {
			files[name] = n
		}
	}
	return files
}

// emptyMinix makes the image of a disk with an empty minix file system.
func emptyMinix(ctx context.Context, dir string, octets int64) ([]byte, error) {
	file := filepath.Join(dir, "disk-minix")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, octets)); err != nil {
		return nil, err
	}
	if err := run(ctx, "", "mkfs.minix", "-3", file); err != nil {
		return nil, err
	}
	image, err := os.ReadFile(file)
	return image, errors.Join(err, os.Remove(file))
}
