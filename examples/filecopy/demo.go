package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/goiwarp/iwarp"
)

// demo puts a file to a server in another process, deletes it, gets it back, and
// fails unless it is the same and every octet went by RDMA.
func (c *command) demo(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "filecopy-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	shared, local := filepath.Join(dir, "server"), filepath.Join(dir, "file")
	if err := os.Mkdir(shared, 0o777); err != nil {
		return err
	}
	srv, err := startServer(ctx, shared, c.link)
	if err != nil {
		return err
	}
	defer srv.stop()
	fmt.Fprintf(c.out, "server: process %d on %s\nclient: process %d\n", srv.pid(), srv.addr, os.Getpid())

	if err := makeFile(ctx, local, int64(c.size)); err != nil {
		return err
	}
	c.addr = srv.addr
	cl, err := c.connect(ctx)
	if err != nil {
		return srv.explain(err)
	}
	defer quietly(cl)
	if err := c.thereAndBack(ctx, cl, local); err != nil {
		return srv.explain(err)
	}
	return cl.Close()
}

func (c *command) thereAndBack(ctx context.Context, cl *client, local string) error {
	put, err := cl.put(ctx, local, "file")
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, put)
	if err := os.Remove(local); err != nil {
		return err
	}
	got, err := cl.get(ctx, "file", local)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, got)
	return check(c.out, put, got, cl.qp.Stats())
}

// makeFile fills a file with random octets.
func makeFile(ctx context.Context, name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer quietly(f)
	random := rand.NewChaCha8([32]byte{byte(rand.Uint32()), 1: byte(rand.Uint32())})
	if _, err := io.CopyN(f, reader{ctx, random}, size); err != nil {
		return err
	}
	return f.Close()
}

// check prints the sums and the counters of both processes, and compares them.
func check(w io.Writer, put, got *result, client iwarp.QPStats) error {
	server := got.server
	rows := []struct {
		what           string
		client, server uint64
	}{
		{"RDMA Write", client.Sent.RDMAWrite.Octets, server.Received.RDMAWrite.Octets},
		{"RDMA Read Response", client.Received.ReadResponse.Octets, server.Sent.ReadResponse.Octets},
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "octets moved\tclient\tserver\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t\n", r.what, r.client, r.server)
	}
	t.Flush()
	fmt.Fprintf(w, "SHA-256 before  %s\nSHA-256 after   %s\n", put.sum, got.sum)

	for _, r := range rows {
		if size := uint64(put.size); r.client != size || r.server != size {
			return fmt.Errorf("%s: the client counted %d octets and the server %d, of a file of %d", r.what, r.client, r.server, size)
		}
	}
	if put.sum != got.sum {
		return fmt.Errorf("the file that came back is another one")
	}
	return nil
}
