package nfsclient

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rpcrdma"
)

// A Job holds the parameters of the script.
type Job struct {
	Addr  string    // of the server
	Root  string    // the handle of the directory, in hexadecimal
	NoCRC bool      //
	Say   io.Writer // what the script reports
}

// Run uses a directory of a server with calls of every form, with messages of two sizes, and compares everything. After "ready" it
// waits for the end of the server.
func Run(ctx context.Context, j *Job) error {
	root, err := hex.DecodeString(j.Root)
	if err != nil {
		return err
	}
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return err
	}
	for _, inline := range []int{1024, 4096} {
		c, err := j.dial(ctx, rnic, inline)
		if err != nil {
			return err
		}
		u := &use{conn: c, dir: root}
		if err := u.everything(ctx, fmt.Sprintf("inline%d", inline)); err != nil {
			return fmt.Errorf("messages of %d octets: %w", inline, err)
		}
		fmt.Fprintf(j.Say, "messages of %d octets: %+v\n", inline, c.QP().Stats().Received)
		if err := c.Close(); err != nil {
			return err
		}
	}
	if err := j.untilTheEnd(ctx, rnic, root); err != nil {
		return err
	}
	return rnic.Close()
}

func (j *Job) dial(ctx context.Context, rnic *iwarp.RNIC, inline int) (*conn, error) {
	cfg := &rpcrdma.ClientConfig{Inline: inline, QP: iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: j.NoCRC}}}
	c, err := rpcrdma.Dial(ctx, rnic, "tcp", j.Addr, cfg)
	if err != nil {
		return nil, err
	}
	return &conn{Client: c, machine: strings.Repeat("m", 200), xid: rand.Uint32()}, nil
}

// untilTheEnd calls the server until the server is stopped. The call that is running then must fail, and say why.
func (j *Job) untilTheEnd(ctx context.Context, rnic *iwarp.RNIC, root handle) error {
	c, err := j.dial(ctx, rnic, 4096)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		_, err := c.size(ctx, root)
		switch {
		case errors.Is(err, net.ErrClosed):
			fmt.Fprintf(j.Say, "ended: %v\n", err)
			return c.Close()
		case err != nil:
			return fmt.Errorf("the end of the server: %w", err)
		case first:
			fmt.Fprintln(j.Say, "ready")
		}
	}
}

// A use is the use of one connection.
type use struct {
	*conn
	dir handle
}

// everything makes a directory, and uses it.
func (u *use) everything(ctx context.Context, name string) (err error) {
	if u.dir, err = u.mkdir(ctx, u.dir, name); err != nil {
		return fmt.Errorf("mkdir: %w", err)
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"files", u.files}, {"links", u.links}, {"names", u.manyNames}, {"long names", u.longNames}, {"several at a time", u.atOnce}, {"errors", u.errors},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// pattern returns octets that differ from file to file.
func pattern(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	_, _ = r.Read(b)
	return b
}

// files writes files of lengths at the edges of messages, words and pages, and reads them in one piece and in others.
func (u *use) files(ctx context.Context) error {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 500, 700, 900, 1024, 3000, 3800, 3999, 4000, 4095, 4096, 4097, 5001, 65535, 1<<20 - 1, 1 << 20} {
		if err := u.file(ctx, fmt.Sprintf("file%d", n), n); err != nil {
			return fmt.Errorf("%d octets: %w", n, err)
		}
	}
	return nil
}

func (u *use) file(ctx context.Context, name string, n int) error {
	data := pattern(n)
	h, err := u.create(ctx, u.dir, name)
	if err != nil {
		return err
	}
	if k, err := u.write(ctx, h, 0, data); err != nil || k != n {
		return fmt.Errorf("written %d: %w", k, err)
	}
	if size, err := u.size(ctx, h); err != nil || size != uint64(n) {
		return fmt.Errorf("size %d: %w", size, err)
	}
	for _, piece := range []int{max(n, 1), n + 3, n/2 + 1} {
		for off := 0; ; {
			b := bytes.Repeat([]byte{0xee}, piece+8)
			k, eof, err := u.read(ctx, h, uint64(off), piece, b[:piece])
			if err != nil {
				return err
			}
			if !bytes.Equal(b[:k], data[off:off+k]) || bytes.Count(b[piece:], []byte{0xee}) != 8 {
				return fmt.Errorf("wrong octets in %d from %d on", k, off)
			}
			if off += k; eof || k == 0 {
				if off != n {
					return fmt.Errorf("the file ends after %d octets", off)
				}
				break
			}
		}
	}
	return nil
}

func (u *use) links(ctx context.Context) error {
	for _, n := range []int{1, 100, 1000, 3000} {
		to := strings.Repeat("l", n)
		h, err := u.symlink(ctx, u.dir, fmt.Sprintf("link%d", n), to)
		if err != nil {
			return err
		}
		if got, err := u.readlink(ctx, h); err != nil || got != to {
			return fmt.Errorf("a link of %d octets is one of %d: %w", n, len(got), err)
		}
	}
	return nil
}

// manyNames lists a directory whose list does not fit into a message.
func (u *use) manyNames(ctx context.Context) error {
	dir, err := u.mkdir(ctx, u.dir, "many")
	if err != nil {
		return err
	}
	want := map[string]bool{".": true, "..": true}
	for i := range 300 {
		name := fmt.Sprintf("name%03d%s", i, strings.Repeat("-", i%50))
		if _, err := u.create(ctx, dir, name); err != nil {
			return err
		}
		want[name] = true
	}
	for _, most := range []uint32{2048, 32 << 10} {
		names, err := u.names(ctx, dir, most)
		if err != nil {
			return err
		}
		for name := range want {
			if !names[name] {
				return fmt.Errorf("%s is missing in lists of %d octets", name, most)
			}
		}
		if len(names) != len(want) {
			return fmt.Errorf("%d names in place of %d", len(names), len(want))
		}
	}
	return nil
}

// longNames makes a call without data that does not fit into a short message.
func (u *use) longNames(ctx context.Context) error {
	from, to := strings.Repeat("f", 255), strings.Repeat("t", 255)
	if _, err := u.create(ctx, u.dir, from); err != nil {
		return err
	}
	if err := u.rename(ctx, u.dir, from, to); err != nil {
		return err
	}
	_, err := u.lookup(ctx, u.dir, to)
	return err
}

// atOnce writes and reads several files at a time.
func (u *use) atOnce(ctx context.Context) error {
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		mine := &use{conn: &conn{Client: u.Client, machine: u.machine, xid: u.xid + uint32(i+1)<<20}, dir: u.dir}
		all.Go(func() { errs[i] = mine.file(ctx, fmt.Sprintf("at-once%d", i), 200_000+i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// errors: if the server refuses a call, only that call fails.
func (u *use) errors(ctx context.Context) error {
	const noEntry = Status(2)
	if _, err := u.lookup(ctx, u.dir, "none"); !errors.Is(err, noEntry) {
		return fmt.Errorf("a name that is not there: %w", err)
	}
	_, err := u.lookup(ctx, u.dir, "file65535")
	return err
}
