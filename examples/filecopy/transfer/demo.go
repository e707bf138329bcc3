package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
)

// A Demonstration puts a file to a server in another process, and gets it back.
type Demonstration struct {
	Link
	Size  int64
	Trace io.WriteCloser // as in DialOptions
	Bar   io.Writer      // as in DialOptions
}

// Shown is the outcome of a Demonstration.
type Shown struct {
	Put    *Result       `json:"put"`
	Got    *Result       `json:"get"`
	Client iwarp.QPStats `json:"-"`
}

// Run puts a file to a server in another process, deletes it, and gets it back. It fails unless the file is the same and every
// octet was moved by RDMA. The process runs this program, whose command serve must work like that of the example filecopy. Run
// prints the steps to out, and fails if out is a pipe that nothing reads any more.
func (d *Demonstration) Run(ctx context.Context, out io.Writer) (s *Shown, err error) {
	defer program.OutlivePipe()()
	err = program.Printing(ctx, out, func(ctx context.Context, out io.Writer) (err error) {
		s, err = d.run(ctx, out)
		return err
	})
	return s, err
}

func (d *Demonstration) run(ctx context.Context, out io.Writer) (*Shown, error) {
	dir, err := os.MkdirTemp("", "iwarp-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	shared, local := filepath.Join(dir, "server"), filepath.Join(dir, "file")
	if err := os.Mkdir(shared, 0o777); err != nil {
		return nil, err
	}
	srv, err := startServer(ctx, shared, d.Link)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	fmt.Fprintf(out, "server: process %d on %s\nclient: process %d\n", srv.pid(), srv.addr, os.Getpid())

	if err := makeFile(ctx, local, d.Size); err != nil {
		return nil, err
	}
	cl, err := Dial(ctx, DialOptions{Link: d.Link, Addr: srv.addr, Trace: d.Trace, Bar: d.Bar})
	if err != nil {
		return nil, srv.explain(err)
	}
	defer quietly(cl)
	s, err := thereAndBack(ctx, cl, local, out)
	if err != nil {
		return s, srv.explain(err)
	}
	return s, cl.Close()
}

func thereAndBack(ctx context.Context, cl *Client, local string, out io.Writer) (*Shown, error) {
	put, err := cl.Put(ctx, local, "file")
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, put)
	if err := os.Remove(local); err != nil {
		return nil, err
	}
	got, err := cl.Get(ctx, "file", local)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, got)
	s := &Shown{Put: put, Got: got, Client: cl.qp.Stats()}
	return s, s.check(out)
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
func (s *Shown) check(w io.Writer) error {
	server := s.Got.Server
	rows := []struct {
		what           string
		client, server uint64
	}{
		{"RDMA Write", s.Client.Sent.RDMAWrite.Octets, server.Received.RDMAWrite.Octets},
		{"RDMA Read Response", s.Client.Received.ReadResponse.Octets, server.Sent.ReadResponse.Octets},
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "octets moved\tclient\tserver\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t\n", r.what, r.client, r.server)
	}
	t.Flush()
	fmt.Fprintf(w, "SHA-256 before  %s\nSHA-256 after   %s\n", s.Put.Sum, s.Got.Sum)

	for _, r := range rows {
		if size := uint64(s.Put.Size); r.client != size || r.server != size {
			return fmt.Errorf("%s: the client counted %d octets and the server %d, of a file of %d", r.what, r.client, r.server, size)
		}
	}
	if s.Put.Sum != s.Got.Sum {
		return errors.New("the file that came back is another one")
	}
	return nil
}
