package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/goiwarp/iwarp/interop/nbd"
)

// A slimVM is one boot of a slim image.
type slimVM struct {
	image     *slimImage
	initramfs string
	accel     string
	console   string // the file that its serial line goes to; beside it are sockets
	disks     []nbd.Medium
	network   bool
	more      []string // arguments of QEMU
	args      string   // of the program

	cmd     *exec.Cmd
	ended   chan struct{}   // closed: the process has
	serving []chan struct{} // closed: a disk is not used any more
	sockets []net.Listener
}

// start starts the machine. The context that it returns ends with it.
func (q *slimVM) start(ctx context.Context) (context.Context, error) {
	args := []string{
		"-n", "10", "qemu-system-x86_64", "-M", "pc", "-accel", q.accel, "-cpu", "max", "-smp", "1", "-m", "256",
		"-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:" + q.console,
		"-kernel", q.image.vmlinux, "-initrd", q.initramfs,
	}
	if q.network {
		args = append(args, "-netdev", "user,id=net,ipv6=off", "-device", "virtio-net-pci,netdev=net,romfile=")
	}
	for i, d := range q.disks {
		socket := fmt.Sprintf("%s.disk%d", q.console, i)
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "unix", socket)
		if err != nil {
			q.kill()
			return nil, err
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			serveDisk(l, d)
		}()
		q.sockets, q.serving = append(q.sockets, l), append(q.serving, served)
		// With a cache that the guest knows of: its flushes come here as flushes.
		args = append(args, "-blockdev", fmt.Sprintf("driver=nbd,node-name=disk%d,server.type=unix,server.path=%s", i, socket),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d,write-cache=on", i))
	}
	args = append(args, q.more...)
	args = append(args, "-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check net.ifnames=0 -- "+q.args)
	ctx, over := context.WithCancelCause(ctx)
	q.cmd = exec.CommandContext(ctx, "nice", args...)
	said := new(strings.Builder)
	q.cmd.Stdout, q.cmd.Stderr = said, said
	if err := q.cmd.Start(); err != nil {
		over(err)
		q.cmd = nil
		q.kill()
		return nil, err
	}
	q.ended = make(chan struct{})
	go func() {
		err := q.cmd.Wait()
		over(fmt.Errorf("qemu has ended: %w %s", err, tail(said.String(), 5)))
		close(q.ended)
	}()
	return ctx, nil
}

// serveDisk serves a disk to the one who comes, however that ends.
func serveDisk(l net.Listener, d nbd.Medium) {
	if c, err := l.Accept(); err == nil {
		_ = nbd.Serve(c, d)
	}
}

// kill ends the machine as the end of its power does, and returns when nobody uses its
// disks any more. Again, it does nothing.
func (q *slimVM) kill() {
	if q.cmd != nil {
		_ = q.cmd.Process.Kill()
		<-q.ended
		q.cmd = nil
	}
	for _, l := range q.sockets {
		_ = l.Close()
	}
	for _, served := range q.serving {
		<-served
	}
	q.sockets, q.serving = nil, nil
}
