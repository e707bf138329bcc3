package host

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// ReadAt reads len(p) octets at off, both multiples of BlockSize. As io.ReaderAt requires, a read that
// extends beyond the namespace returns the octets up to its end, and io.EOF. After any error, the first
// n octets were read.
func (n *Namespace) ReadAt(p []byte, off int64) (int, error) {
	return n.ReadAtContext(context.Background(), p, off)
}

// ReadAtContext is like ReadAt, but ends with ctx. Octets that arrive afterwards are not placed in p.
func (n *Namespace) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	s, m := n.state.Load(), capsule.RW{Opcode: capsule.OpRead}
	size := s.geometry.Size()
	if s.err != nil || off < 0 || int64(len(p)) <= size-off {
		return n.move(ctx, m, p, off)
	}
	if off >= size {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	done, err := n.move(ctx, m, p[:size-off], off)
	if err == nil {
		err = io.EOF
	}
	return done, err
}

// WriteAt writes p at off; off and len(p) are multiples of BlockSize. A write that does not fit the
// namespace fails with ErrOutOfRange and writes nothing. If WriteAt returns nil, later reads return p, but
// only Flush makes it durable. After an error, the first n octets were written, and it is unknown which
// others were.
func (n *Namespace) WriteAt(p []byte, off int64) (int, error) {
	return n.WriteAtContext(context.Background(), p, off)
}

// WriteAtContext is like WriteAt, but ends with ctx. It is then unknown whether the octets of the
// outstanding command are written.
func (n *Namespace) WriteAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	return n.move(ctx, capsule.RW{Opcode: capsule.OpWrite}, p, off)
}

// WriteFUA is like WriteAtContext, but the octets are durable when it returns nil (force unit access).
func (n *Namespace) WriteFUA(ctx context.Context, p []byte, off int64) (int, error) {
	return n.move(ctx, capsule.RW{Opcode: capsule.OpWrite, FUA: true}, p, off)
}

// Compare compares p with the octets at off. If they differ, the error is a [capsule.StatusError] with
// capsule.StatusCompareFailure; if the target does not support Compare, with StatusInvalidOpcode. The
// result counts the octets that are known to be equal. If p is split into several commands, the whole
// comparison is not atomic.
func (n *Namespace) Compare(ctx context.Context, p []byte, off int64) (int, error) {
	return n.move(ctx, capsule.RW{Opcode: capsule.OpCompare}, p, off)
}

// check checks a range of octets. The namespace must be usable.
func (s *nsState) check(off, n int64) error {
	mask := int64(s.geometry.BlockSize() - 1)
	switch {
	case s.err != nil:
		return s.err
	case off < 0 || n < 0 || off > s.geometry.Size() || n > s.geometry.Size()-off:
		return ErrOutOfRange
	case (off|n)&mask != 0:
		return ErrUnaligned
	}
	return nil
}

// move executes a Read, Write or Compare, in as many commands as necessary, one after the other.
func (n *Namespace) move(ctx context.Context, m capsule.RW, p []byte, off int64) (done int, err error) {
	s := n.state.Load()
	if err := s.check(off, int64(len(p))); err != nil {
		return 0, err
	}
	m.NSID = n.nsid
	for done < len(p) {
		most, err := n.c.transfer(ctx)
		if err != nil {
			return done, err
		}
		size := min(len(p)-done, most&^(s.geometry.BlockSize()-1))
		m.SLBA = uint64(off+int64(done)) >> s.geometry.LBADS
		m.NLB = uint16(size>>s.geometry.LBADS - 1)
		if err := n.command(ctx, m.SQE(0, capsule.SGL{}), p[done:done+size]); err != nil {
			return done, err
		}
		done += size
	}
	return done, nil
}

// transfer returns the maximum number of octets that a command moves.
func (c *Controller) transfer(ctx context.Context) (int, error) {
	a, err := c.current(ctx)
	if err != nil {
		return 0, err
	}
	return a.transfer, nil
}

// retryDelay is the time before a command that the target has refused is sent again.
const retryDelay = 100 * time.Millisecond

// command executes an I/O command. It sends the command again after a status without DNR, and, if that is
// harmless, after the connections were lost: at most Options.Retries times. The first time that the command
// is sent does not count, however often the connections are lost before.
func (n *Namespace) command(ctx context.Context, sqe capsule.SQE, data []byte) error {
	o := n.c.o
	for sent, tries := false, 0; ; {
		a, err := n.usable(ctx)
		if err != nil && sent && ctx.Err() == nil {
			return &LostError{Cause: err, Sent: true}
		}
		if err != nil {
			return err
		}
		cqe, err := a.queue().do(ctx, &command{sqe: sqe, data: data, timeout: o.IOTimeout})
		if err == nil && cqe.Status.OK() {
			return nil
		}
		lost := err != nil
		again, counts, err := verdict(sqe.Opcode, &cqe, err)
		if !again || counts && tries == o.Retries {
			return err
		}
		if !counts {
			continue
		}
		sent = sent || lost
		tries++
		if err := sleep(ctx, retryDelay); err != nil {
			return err
		}
	}
}

// usable returns the association for a command on the namespace. It waits while there is none.
func (n *Namespace) usable(ctx context.Context) (*assoc, error) {
	a, err := n.c.current(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.state.Load().err; err != nil {
		return nil, err
	}
	return a, ctx.Err()
}

// verdict reports whether an unsuccessful command is sent again, whether that counts as a try, and
// otherwise what its error is.
func verdict(op capsule.Opcode, cqe *capsule.CQE, err error) (again, counts bool, _ error) {
	if err == nil {
		return !cqe.Status.DNR(), true, cqe.Status.Err()
	}
	var lost *LostError
	if !errors.As(err, &lost) {
		return false, false, err
	}
	return !lost.Sent || op != capsule.OpCompare, lost.Sent, err
}
