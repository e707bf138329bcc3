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

// A slimVM is one boot of a slimImage. The fields in the first block are set before it starts.
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
	serving []chan struct{} // closed: a disk is no longer used
	sockets []net.Listener
}

// start starts the machine. The context that it returns ends with it.
func (q *slimVM) start(ctx context.Context) (context.Context, error) {
	args, err := q.arguments(ctx)
	if err != nil {
		q.kill()
		return nil, err
	}
	ctx, over := context.WithCancelCause(ctx)
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	said := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		over(err)
		q.kill()
		return nil, err
	}
	q.cmd, q.ended = cmd, make(chan struct{})
	go func() {
		err := cmd.Wait()
		over(fmt.Errorf("qemu has ended: %w %s", err, tail(said.String(), 5)))
		close(q.ended)
	}()
	return ctx, nil
}

// arguments returns the arguments of QEMU. It starts to serve the disks that they name.
func (q *slimVM) arguments(ctx context.Context) ([]string, error) {
	args := []string{
		"-M", "pc", "-accel", q.accel, "-cpu", "max", "-smp", "1", "-m", "256",
		"-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:" + q.console,
		"-kernel", q.image.vmlinux, "-initrd", q.initramfs,
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check net.ifnames=0 -- " + q.args,
	}
	if q.network {
		args = append(args, "-netdev", "user,id=net,ipv6=off", "-device", "virtio-net-pci,netdev=net,romfile=")
	}
	for i, d := range q.disks {
		socket := fmt.Sprintf("%s.disk%d", q.console, i)
		if err := q.serve(ctx, socket, d); err != nil {
			return nil, err
		}
		// With a cache that the guest knows: its flushes arrive here as flushes.
		args = append(args, "-blockdev", fmt.Sprintf("driver=nbd,node-name=disk%d,server.type=unix,server.path=%s", i, socket),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d,write-cache=on", i))
	}
	return append(args, q.more...), nil
}

// serve serves a disk to the first client that connects, until the client ends the connection.
func (q *slimVM) serve(ctx context.Context, socket string, d nbd.Medium) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if c, err := l.Accept(); err == nil {
			_ = nbd.Serve(c, d)
		}
	}()
	q.sockets, q.serving = append(q.sockets, l), append(q.serving, served)
	return nil
}

// kill ends the machine like a power cut, and returns when its disks are no longer in
// use. A second call does nothing.
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
