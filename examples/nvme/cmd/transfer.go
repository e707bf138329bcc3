package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/internal/units"
)

// A transfer holds the flags of read and write.
type transfer struct {
	initiator
	nsid           uint
	offset, length units.Size
	file           string
}

// piece is how many octets one call of the host moves.
const piece = 1 << 20

func readFlags(fs *flag.FlagSet) action {
	t := &transfer{}
	t.flags(fs, "write what is read to this `file`; empty: to standard output", "octets to read; 0: all that there are")
	return t.read
}

func writeFlags(fs *flag.FlagSet) action {
	t := &transfer{}
	t.flags(fs, "write the octets of this `file`; empty: of standard input", "octets to write; 0: all that there are")
	return t.write
}

func (t *transfer) flags(fs *flag.FlagSet, file, length string) {
	t.initiator.flags(fs, true)
	fs.UintVar(&t.nsid, "nsid", 1, "the `namespace`")
	fs.Var(&t.offset, "offset", "`octets` in front of the first one, a multiple of the block size")
	fs.Var(&t.length, "length", length+"; a multiple of the block size")
	fs.StringVar(&t.file, "file", "", file)
}

// open connects, and returns the namespace.
func (t *transfer) open(ctx context.Context, addr string, s *streams) (*host.Controller, *host.Namespace, error) {
	c, err := t.connect(ctx, addr, s)
	if err != nil {
		return nil, nil, err
	}
	n, err := namespace(ctx, c, t.nsid)
	if err == nil {
		err = t.check(n)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, n, nil
}

// check checks the flags against the namespace.
func (t *transfer) check(n *host.Namespace) error {
	bs, octets := units.Size(n.BlockSize()), units.Size(n.Size())
	switch {
	case t.offset%bs != 0:
		return fmt.Errorf("-offset %d is not a multiple of the block size %d of namespace %d", t.offset, bs, t.nsid)
	case t.length%bs != 0:
		return fmt.Errorf("-length %d is not a multiple of the block size %d of namespace %d", t.length, bs, t.nsid)
	case t.offset > octets || t.length > octets-t.offset:
		return fmt.Errorf("-offset %d and -length %d are not within namespace %d, which has %d octets", t.offset, t.length, t.nsid, octets)
	}
	return nil
}

func (t *transfer) read(ctx context.Context, s *streams, args []string) (err error) {
	c, n, err := t.open(ctx, args[0], s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	out := s.out
	if t.file != "" {
		f, ferr := os.Create(t.file)
		if ferr != nil {
			return ferr
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	left := int64(t.length)
	if left == 0 {
		left = n.Size() - int64(t.offset)
	}
	buf := make([]byte, piece)
	for off := int64(t.offset); left > 0; {
		p := buf[:min(left, piece)]
		if _, err := n.ReadAtContext(ctx, p, off); err != nil {
			return fmt.Errorf("read %d octets at %d: %w", len(p), off, err)
		}
		if _, err := out.Write(p); err != nil {
			return err
		}
		off, left = off+int64(len(p)), left-int64(len(p))
	}
	return nil
}

// write writes, and ends with a Flush: the written data are durable when the command succeeds.
func (t *transfer) write(ctx context.Context, s *streams, args []string) (err error) {
	in := s.in
	if t.file != "" {
		f, err := os.Open(t.file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	c, n, err := t.open(ctx, args[0], s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if t.length > 0 {
		in = io.LimitReader(in, int64(t.length))
	}
	done, err := t.copyTo(ctx, n, in)
	if err != nil {
		return err
	}
	if t.length > 0 && done < int64(t.length) {
		return fmt.Errorf("the input ends after %d octets, and -length is %d", done, t.length)
	}
	return n.Flush(ctx)
}

// copyTo writes the contents of in to the namespace, and returns the number of octets.
func (t *transfer) copyTo(ctx context.Context, n *host.Namespace, in io.Reader) (done int64, err error) {
	buf := make([]byte, piece)
	for {
		got, err := io.ReadFull(in, buf)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return done, err
		}
		if extra := got % n.BlockSize(); extra != 0 {
			return done, fmt.Errorf("the input has %d octets, which is not a multiple of the block size %d: %d were written",
				done+int64(got), n.BlockSize(), done)
		}
		off := int64(t.offset) + done
		if _, err := n.WriteAtContext(ctx, buf[:got], off); err != nil {
			return done, fmt.Errorf("write %d octets at %d: %w", got, off, err)
		}
		if done += int64(got); last {
			return done, nil
		}
	}
}
