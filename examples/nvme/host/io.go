package host

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// ReadAt reads len(p) octets at off, both multiples of BlockSize. As io.ReaderAt wants it, what ends
// behind the namespace is read up to there, with io.EOF. If the error comes after some octets, the n
// octets before it were read.
func (n *Namespace) ReadAt(p []byte, off int64) (int, error) {
	return n.ReadAtContext(context.Background(), p, off)
}

// ReadAtContext is ReadAt that ends with ctx. What arrives then is not placed in p.
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

// WriteAt writes p at off; off and len(p) are multiples of BlockSize. What does not fit the namespace
// is not begun with: ErrOutOfRange. If it returns nil later reads give p, but only Flush makes it
// durable. If the error comes after some octets, the n octets before it were written, and it is not
// known which others were.
func (n *Namespace) WriteAt(p []byte, off int64) (int, error) {
	return n.WriteAtContext(context.Background(), p, off)
}

// WriteAtContext is WriteAt that ends with ctx. It is then not known whether the octets that were
// under way are written.
func (n *Namespace) WriteAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	return n.move(ctx, capsule.RW{Opcode: capsule.OpWrite}, p, off)
}

// WriteFUA is WriteAtContext, and the octets are durable when it returns nil (force unit access).
func (n *Namespace) WriteFUA(ctx context.Context, p []byte, off int64) (int, error) {
	return n.move(ctx, capsule.RW{Opcode: capsule.OpWrite, FUA: true}, p, off)
}

// Compare compares p with the octets at off. If they differ the error is a [capsule.StatusError] of
// capsule.StatusCompareFailure; what the target does not support is one of StatusInvalidOpcode. The
// result counts the octets that are known to be equal. Where p is cut in several commands, the
// comparison as a whole is not atomic.
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

// move carries out Read, Write or Compare, in as many commands as it takes, one after the other.
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

// transfer is how many octets a command moves at most.
func (c *Controller) transfer(ctx context.Context) (int, error) {
	a, err := c.current(ctx)
	if err != nil {
		return 0, err
	}
	return a.transfer, nil
}

// retryDelay is the time before a command is sent again that the target has refused.
const retryDelay = 100 * time.Millisecond

// command carries an I/O command out. It is sent again after a status without DNR, and, if that can do
// no harm, after the connections were lost: Options.Retries times at most. Being sent for the first
// time does not count, however often the connections are lost before.
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

// usable is the association for a command on the namespace, for which it waits while there is none.
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

// verdict tells whether a command is sent again that was no success, whether that counts as a try, and
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
