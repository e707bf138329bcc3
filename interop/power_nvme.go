package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/goiwarp/iwarp/interop/nbd"
	"github.com/goiwarp/iwarp/interop/nvmecut"
	"github.com/goiwarp/iwarp/interop/powercut"
)

// runNVMeCuts cuts the power of an NVMe target as often as the flags say. It returns an error if durable data were lost, or,
// with a sabotage, if none were, because the check must detect the sabotage.
func (p *power) runNVMeCuts(ctx context.Context) error {
	if err := p.buildInitramfs(ctx, cutModules); err != nil {
		return err
	}
	began := time.Now()
	m := &machine{power: p, lot: lotOf(p.seed)}
	m.newDisk()
	h := nvmecut.NewHost(p.seed)
	var err error
	cuts := 0
	for ; cuts < p.cuts; cuts++ {
		if err = m.nvmeLife(ctx, h, true); err != nil {
			break
		}
	}
	if err == nil {
		err = m.nvmeLife(ctx, h, false)
	}
	if err == nil && p.sabotage == powercut.Honest {
		err = p.checkJournal(ctx, m.disk)
	}
	acknowledged, lost := h.Records()
	fmt.Printf("NVMe: %d cuts, %d versions of blocks acknowledged as durable, %d lost blocks (sabotage %s, seed %d, %.1f s per cut)\n",
		cuts, acknowledged, lost, p.sabotage, p.seed, time.Since(began).Seconds()/float64(max(cuts, 1)))
	switch {
	case err != nil:
		return err
	case acknowledged == 0:
		return errors.New("nothing was acknowledged as durable")
	case lost > 0 && p.sabotage == powercut.Honest:
		return errors.New("durable blocks were lost")
	case lost == 0 && p.sabotage != powercut.Honest:
		return errors.New("the sabotage was not noticed")
	}
	return nil
}

// nvmeLife runs one life of the target: it connects, checks the blocks, and, unless this is the last life, writes blocks until
// the power is cut. A machine that does not start is booted again.
func (m *machine) nvmeLife(ctx context.Context, h *nvmecut.Host, write bool) error {
	after := leastTraffic + time.Duration(m.lot.Int64N(int64(mostTraffic-leastTraffic)))
	beforeAcked, beforeLost := h.Records()
	for try := 1; ; try++ {
		err := m.bootNVMe(ctx, h, write, after)
		if errors.Is(err, errNotUp) && try < boots && ctx.Err() == nil {
			m.say("%v (see %s)", err, m.consoleFile(m.boots-1))
			if lastWord(m.consoleFile(m.boots-1)) != "" { // its program started, but could not open the file
				h.Forget()
				m.newDisk()
			}
			continue
		}
		for i, n := range h.News() {
			if i < 3 {
				m.say("lost: %s", n)
			}
		}
		acked, lost := h.Records()
		if write {
			m.say("NVMe: %4d lost before, %5d acknowledged, cut after %4d ms", lost-beforeLost, acked-beforeAcked, after.Milliseconds())
		}
		return err
	}
}

func (m *machine) consoleFile(boot int) string {
	return filepath.Join(m.out, fmt.Sprintf("console-nvme-%03d", boot))
}

func (m *machine) bootNVMe(ctx context.Context, h *nvmecut.Host, write bool, after time.Duration) error {
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	q := &slimVM{
		image: m.image, initramfs: m.initramfs, accel: m.accel, disks: []nbd.Medium{m.disk}, console: m.consoleFile(m.boots),
		args: "-nvme -sabotage " + m.sabotage,
		more: []string{
			"-netdev", fmt.Sprintf("user,id=net,ipv6=off,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%s", port, nvmecut.Port),
			"-device", "virtio-net-pci,netdev=net,romfile=",
		},
	}
	m.boots++
	up, err := q.start(ctx)
	if err != nil {
		return err
	}
	defer m.disk.Cut() // when it is not in use any more
	defer q.kill()
	meet, cancel := m.pace.Context(up, bootTime, nil)
	defer cancel()
	if err := h.Meet(meet, net.JoinHostPort("127.0.0.1", port)); err != nil {
		return fmt.Errorf("%w: %w", errNotUp, err)
	}
	defer h.Part()
	if !write {
		return nil
	}
	written := make(chan error, 1)
	go func() { written <- h.Run(ctx) }()
	select {
	case err := <-written:
		return endedEarly(up, err, q.console)
	case <-time.After(after):
	}
	q.kill()
	return <-written
}

// freePort returns a port of the loopback address that is free now.
func freePort(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// checkJournal replays the journal of the disk's file system, as the last cut has left it, and checks the file system.
func (p *power) checkJournal(ctx context.Context, disk *nbd.Disk) error {
	image := make([]byte, disk.Size())
	if err := disk.ReadAt(image, 0); err != nil {
		return err
	}
	file := filepath.Join(p.out, "after-cut")
	if err := os.WriteFile(file, image, 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	if err := run(ctx, "", "e2fsck", "-E", "journal_only", "-p", file); err != nil {
		return fmt.Errorf("replay the journal: %w", err)
	}
	return run(ctx, "", "e2fsck", "-fn", file)
}
