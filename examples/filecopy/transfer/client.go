package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A Client has one connection to a server. Only one goroutine may use it.
type Client struct {
	control
	rnic  *iwarp.RNIC
	bar   io.Writer
	trace io.Closer
}

// DialOptions say which server to connect to, and how.
type DialOptions struct {
	Link
	Addr  string
	Trace io.WriteCloser // receives a pcap of the connection; Client.Close closes it, and returns the error; nil: no trace
	Bar   io.Writer      // shows progress if it is a terminal; nil: progress is not shown
}

// A Result describes a transfer.
type Result struct {
	Op     string        `json:"op"`
	Name   string        `json:"name"`
	Size   int64         `json:"octets"`
	Took   time.Duration `json:"nanoseconds"` // for moving the octets, without sums and syncs
	Sum    string        `json:"sha256"`      // the same on both sides
	Server iwarp.QPStats `json:"-"`           // the server's counters, of all transfers of the connection
}

func (r *Result) String() string {
	return fmt.Sprintf("%s  %s  %d octets  %.2f s  %s", r.Op, r.Name, r.Size, r.Took.Seconds(), rate(r.Size, r.Took))
}

// setupTime bounds the set-up of a connection: a peer that does not speak iWARP may accept TCP, and send nothing.
const setupTime = 30 * time.Second

// Dial connects to a server. It takes 30 s at most.
func Dial(ctx context.Context, o DialOptions) (_ *Client, err error) {
	c := &Client{bar: o.Bar}
	defer func() {
		if err != nil {
			quietly(c)
		}
	}()
	qc := &iwarp.QPConfig{Setup: c.setup, MPA: iwarp.MPAOptions{NoCRC: o.NoCRC}}
	if o.Trace != nil {
		c.trace, qc.Trace = o.Trace, o.Trace
	}
	if c.rnic, err = o.open(iwarp.Config{}); err != nil {
		return nil, err
	}
	if c.pd, err = c.rnic.AllocPD(); err != nil {
		return nil, err
	}
	qc.PD = c.pd
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	_, err = c.rnic.Dial(ctx, o.Network, o.Addr, qc)
	return c, err
}

// endTime bounds the end of a connection.
const endTime = 5 * time.Second

// Close ends the connection gracefully if it is still open. It may be called again.
func (c *Client) Close() error {
	var err error
	if c.rnic != nil {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		err = c.rnic.Shutdown(ctx)
	}
	if c.trace != nil {
		err = errors.Join(err, c.trace.Close())
		c.trace = nil
	}
	return err
}

// Put copies the file local to the server, as name.
func (c *Client) Put(ctx context.Context, local, name string) (*Result, error) {
	f, err := open(local, os.Stat, os.Open)
	if err != nil {
		return nil, err
	}
	defer quietly(f)

	rep, err := c.ask(ctx, &request{Op: opPut, Name: name, Size: f.size})
	if err != nil {
		return nil, err
	}
	r := &Result{Op: opPut, Name: name, Size: f.size}
	if r.Took, err = c.move(ctx, iwarp.OpRDMAWrite, f, 0, rep.Region); err == nil {
		r.Sum, err = f.sum(ctx)
	}
	if err != nil {
		c.leave(ctx)
		return nil, err
	}
	if rep, err = c.ask(ctx, &request{Op: opDone, Sum: r.Sum}); err != nil {
		return nil, err
	}
	r.Server = rep.Stats
	return r, nil
}

// Get copies the file name of the server to local. It replaces a regular file at local, or the target of a symbolic link at local, but
// nothing else.
func (c *Client) Get(ctx context.Context, name, local string) (*Result, error) {
	if info, err := os.Stat(local); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular("replace", local)
	}
	if target, err := filepath.EvalSymlinks(local); err == nil {
		local = target // for example /dev/stdout, which must not become a file itself
	}
	root, err := os.OpenRoot(filepath.Dir(local))
	if err != nil {
		return nil, err
	}
	defer quietly(root)
	rep, err := c.ask(ctx, &request{Op: opGet, Name: name})
	if err != nil {
		return nil, err
	}
	in, err := create(root, filepath.Base(local), rep.Region.Size)
	if err != nil {
		c.leave(ctx)
		return nil, err
	}
	defer in.discard()

	r := &Result{Op: opGet, Name: name, Size: in.size}
	if r.Took, err = c.move(ctx, iwarp.OpRDMARead, in.fileBuffer, stag.LocalWrite, rep.Region); err == nil {
		r.Sum, err = in.sum(ctx)
	}
	if err != nil {
		c.leave(ctx)
		return nil, err
	}
	if rep, err = c.ask(ctx, &request{Op: opDone}); err != nil {
		return nil, err
	}
	if rep.Sum != r.Sum {
		return nil, fmt.Errorf("%s has come with SHA-256 %s, the server's has %s", name, r.Sum, rep.Sum)
	}
	r.Server = rep.Stats
	return r, in.keep()
}

// leave ends a transfer that has failed on this side. The server discards it, and waits for the next one.
func (c *Client) leave(ctx context.Context) { _, _ = c.ask(ctx, &request{Op: opDone}) }

// errServerLeft is the error of a client whose server has ended the connection gracefully, but too early.
var errServerLeft = leftError("the server has closed the connection")

// A leftError reports that the peer has ended the connection too early. It matches net.ErrClosed and io.ErrUnexpectedEOF; the latter alone could come from a file.
type leftError string

func (e leftError) Error() string { return string(e) }
func (e leftError) Is(target error) bool {
	return target == net.ErrClosed || target == io.ErrUnexpectedEOF
}

// ask sends a request and waits for the answer. If the server answers with an error, the
// connection stays open. Without an answer it is aborted: the next request would take a
// late answer for its own.
func (c *Client) ask(ctx context.Context, req *request) (*reply, error) {
	var rep reply
	err := c.send(ctx, req)
	sent := err == nil || ctx.Err() != nil
	if err == nil {
		err = c.recv(ctx, &rep)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, errServerLeft
	case err != nil:
		if sent {
			_ = c.qp.Abort()
		}
		return nil, err
	case rep.Error != "":
		return nil, fmt.Errorf("server: %s", rep.Error)
	}
	return &rep, nil
}
