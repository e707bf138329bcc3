package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A client has one connection to a server. It is for one goroutine.
type client struct {
	control
	rnic  *iwarp.RNIC
	bar   *os.File
	trace io.Closer
}

type dialOptions struct {
	link
	addr  string
	trace io.WriteCloser // gets a pcap of the connection, and is closed in the end; nil: none
	bar   *os.File       // where progress is shown if it is a terminal; nil: nowhere
}

// A result tells of a transfer.
type result struct {
	op     string
	name   string
	size   int64
	took   time.Duration // the octets alone, without sums and syncs
	sum    string        // SHA-256, the same on both sides
	server iwarp.QPStats // the server's counters, of all transfers of the connection
}

func (r *result) String() string {
	return fmt.Sprintf("%s  %s  %d octets  %.2f s  %s", r.op, r.name, r.size, r.took.Seconds(), rate(r.size, r.took))
}

func dial(ctx context.Context, o dialOptions) (_ *client, err error) {
	c := &client{bar: o.bar}
	defer func() {
		if err != nil {
			quietly(c)
		}
	}()
	qc := &iwarp.QPConfig{Setup: c.setup, MPA: iwarp.MPAOptions{NoCRC: o.noCRC}}
	if o.trace != nil {
		c.trace, qc.Trace = o.trace, o.trace
	}
	if c.rnic, err = o.open(iwarp.Config{}); err != nil {
		return nil, err
	}
	if c.pd, err = c.rnic.AllocPD(); err != nil {
		return nil, err
	}
	qc.PD = c.pd
	_, err = c.rnic.Dial(ctx, o.network, o.addr, qc)
	return c, err
}

// endTime bounds the end of a connection.
const endTime = 5 * time.Second

// Close ends the connection in good order if it still stands. It may be called again.
func (c *client) Close() error {
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

// put copies the file local to the server, as name.
func (c *client) put(ctx context.Context, local, name string) (*result, error) {
	root, err := os.OpenRoot(filepath.Dir(local))
	if err != nil {
		return nil, err
	}
	defer quietly(root)
	f, err := open(root, filepath.Base(local))
	if err != nil {
		return nil, err
	}
	defer quietly(f)

	rep, err := c.ask(ctx, &request{Op: opPut, Name: name, Size: f.size})
	if err != nil {
		return nil, err
	}
	r := &result{op: opPut, name: name, size: f.size}
	if r.took, err = c.move(ctx, iwarp.OpRDMAWrite, f, 0, rep.Region); err != nil {
		return nil, err
	}
	if r.sum, err = f.sum(ctx); err != nil {
		return nil, err
	}
	if rep, err = c.ask(ctx, &request{Op: opDone, Sum: r.sum}); err != nil {
		return nil, err
	}
	r.server = rep.Stats
	return r, nil
}

// get copies the file name of the server to local, over a file that is there.
func (c *client) get(ctx context.Context, name, local string) (*result, error) {
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
		return nil, err
	}
	defer in.discard()

	r := &result{op: opGet, name: name, size: in.size}
	if r.took, err = c.move(ctx, iwarp.OpRDMARead, in.fileBuffer, stag.LocalWrite, rep.Region); err != nil {
		return nil, err
	}
	if r.sum, err = in.sum(ctx); err != nil {
		return nil, err
	}
	if rep, err = c.ask(ctx, &request{Op: opDone}); err != nil {
		return nil, err
	}
	if rep.Sum != r.sum {
		return nil, fmt.Errorf("%s has come with SHA-256 %s, the server's has %s", name, r.sum, rep.Sum)
	}
	r.server = rep.Stats
	return r, in.keep()
}

// ask sends a request and waits for the answer. An error that the server answers
// leaves the connection as it is.
func (c *client) ask(ctx context.Context, req *request) (*reply, error) {
	var rep reply
	err := c.send(ctx, req)
	if err == nil {
		err = c.recv(ctx, &rep)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("the server has closed the connection: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return nil, err
	case rep.Error != "":
		return nil, fmt.Errorf("server: %s", rep.Error)
	}
	return &rep, nil
}
