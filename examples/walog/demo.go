package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

// A child is a target in a separate process.
type child struct {
	cmd  *exec.Cmd
	in   io.Closer // the other end of its standard input, whose end ends the target, for example when this process is killed
	addr string
	path string
}

// spawn starts a target; addr may have port 0.
func spawn(ctx context.Context, addr, path string, size int64) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, exe, "target", "-addr", addr, "-file-size", fmt.Sprint(size), path), path: path}
	c.cmd.Env = append(os.Environ(), childEnv+"=1")
	c.cmd.Stderr = os.Stderr
	stdout, err := c.cmd.StdoutPipe()
	if err == nil {
		c.in, err = c.cmd.StdinPipe()
	}
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("target %s does not start: %w", path, err)
	}
	c.addr = strings.TrimSpace(line)
	return c, nil
}

// childEnv tells a target that the demo has started it, and the tests' program to run as walog.
const childEnv = "WALOG_CHILD"

// kill ends the process at once, whatever it is doing.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// demo writes a log to three targets, kills one during the run, and starts it again.
func demo(ctx context.Context, o *options, out io.Writer) error {
	if o.records < 3 {
		return program.UsageError("the demo takes three records or more: one without target 3")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	targets := make([]*child, len(demoFiles))
	addrs := make([]string, len(demoFiles))
	for i := range targets {
		var err error
		if targets[i], err = spawn(ctx, "127.0.0.1:0", filepath.Join(o.dir, demoFiles[i]), o.file); err != nil {
			return err
		}
		defer func() { targets[i].kill() }()
		addrs[i] = targets[i].addr
	}
	w, err := openWriter(ctx, addrs, o.file)
	if err != nil {
		return err
	}
	defer func() { _ = w.close() }()

	lost, back, killed := o.records/3, 2*o.records/3, make(chan struct{})
	began := time.Now()
	err = write(ctx, w, o, func(done int) error {
		switch done {
		case lost:
			targets[2].kill()
			fmt.Fprintf(out, "%d records: target 3 is killed\n", done)
			close(killed)
		case back:
			<-killed // by another goroutine, which may not have done so yet
			t, err := spawn(ctx, addrs[2], targets[2].path, o.file)
			if err != nil {
				return err
			}
			targets[2] = t
			fmt.Fprintf(out, "%d records: target 3 is started again\n", done)
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Fprintf(out, "%d records of %d octets, each on two disks, in %v: %.0f/s\n",
		o.records, o.size, took.Round(time.Millisecond), float64(o.records)/took.Seconds())
	if err := w.settle(ctx); err != nil {
		return err
	}
	if err := w.close(); err != nil {
		return err
	}
	for _, t := range targets {
		t.kill()
	}
	return compareLogs(targets, uint64(o.records), out)
}

// write appends o.records records by o.writers goroutines, each one record at a time. at is called
// once for each number of written records, possibly by several goroutines at the same time.
func write(ctx context.Context, w *writer, o *options, at func(done int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var left, done atomic.Int64
	left.Store(int64(o.records))
	var all sync.WaitGroup
	for range o.writers {
		all.Go(func() {
			data := bytes.Repeat([]byte("record. "), o.size/8+1)[:o.size]
			for left.Add(-1) >= 0 {
				err := w.append(ctx, data)
				if err == nil {
					err = at(int(done.Add(1)))
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// compareLogs checks that all files hold the same log of that many records.
func compareLogs(targets []*child, records uint64, out io.Writer) error {
	var first []byte
	for i, t := range targets {
		b, err := os.ReadFile(t.path)
		if err != nil {
			return err
		}
		m := markOf(binary.LittleEndian.Uint64(b))
		if m.tail < start || m.tail > uint64(len(b)) {
			return fmt.Errorf("target %d: a tail at %d", i+1, m.tail)
		}
		log := b[start:m.tail]
		n, err := checkLog(log)
		if err != nil || n != records {
			return errors.Join(fmt.Errorf("target %d has %d records, and should have %d", i+1, n, records), err)
		}
		if i == 0 {
			first = log
		} else if !bytes.Equal(first, log) {
			return fmt.Errorf("the log of target %d differs from that of target 1", i+1)
		}
	}
	fmt.Fprintf(out, "the three logs are equal: %d records, %d octets\n", records, len(first))
	return nil
}
