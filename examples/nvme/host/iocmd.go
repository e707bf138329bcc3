package host

import (
	"context"
	"sync"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// Flush makes durable all octets that were written, through any controller, by calls that returned before Flush. If the target's machine
// has lost power since, the octets may be lost, and Flush does not report this.
func (n *Namespace) Flush(ctx context.Context) error {
	if err := n.Err(); err != nil {
		return err
	}
	return n.command(ctx, capsule.FlushSQE(0, n.nsid), nil)
}

// WriteZeroes makes the octets of the range zero, without sending them; off and size are multiples of BlockSize.
// With deallocate the target may free their space. It is split like WriteAt, or into smaller parts if the target requires that.
func (n *Namespace) WriteZeroes(ctx context.Context, off, size int64, deallocate bool) error {
	s := n.state.Load()
	if err := s.check(off, size); err != nil {
		return err
	}
	m := capsule.RW{Opcode: capsule.OpWriteZeroes, NSID: n.nsid, DEAC: deallocate}
	for size > 0 {
		a, err := n.c.current(ctx)
		if err != nil {
			return err
		}
		bs := s.geometry.BlockSize()
		piece := min(size, int64(max(a.zeroesLimit()&^(bs-1), bs)))
		m.SLBA, m.NLB = uint64(off)>>s.geometry.LBADS, uint16(piece>>s.geometry.LBADS-1)
		if err := n.command(ctx, m.SQE(0, capsule.SGL{}), nil); err != nil {
			return err
		}
		off, size = off+piece, size-piece
	}
	return nil
}

// A Range is a range of octets: multiples of BlockSize.
type Range struct{ Off, Size int64 }

// ranges holds buffers for the ranges that Trim sends.
var ranges = sync.Pool{New: func() any { return new([capsule.MaxDSMRanges * capsule.DSMRangeSize]byte) }}

// Trim tells the target that the contents of the ranges are no longer needed. They read as zero
// afterwards if TrimmedReadsZero reports true. If a range does not fit the namespace, the error is
// ErrOutOfRange, and nothing is trimmed; after another error it is unknown which ranges were trimmed.
func (n *Namespace) Trim(ctx context.Context, list ...Range) error {
	s := n.state.Load()
	for _, r := range list {
		if err := s.check(r.Off, r.Size); err != nil {
			return err
		}
	}
	a, err := n.c.current(ctx)
	if err != nil {
		return err
	}
	most, blocks := a.trimLimits()
	buf := ranges.Get().(*[capsule.MaxDSMRanges * capsule.DSMRangeSize]byte)
	defer ranges.Put(buf)
	data := buf[:0]
	for _, r := range list {
		for slba, left := uint64(r.Off)>>s.geometry.LBADS, uint64(r.Size)>>s.geometry.LBADS; left > 0; {
			d := capsule.DSMRange{SLBA: slba, NLB: uint32(min(left, uint64(blocks)))}
			data = d.Append(data)
			slba, left = slba+uint64(d.NLB), left-uint64(d.NLB)
			if len(data) == most*capsule.DSMRangeSize {
				if err := n.trim(ctx, data); err != nil {
					return err
				}
				data = buf[:0]
			}
		}
	}
	if len(data) == 0 {
		return nil
	}
	return n.trim(ctx, data)
}

// trim sends one Dataset Management.
func (n *Namespace) trim(ctx context.Context, data []byte) error {
	m := capsule.DSM{NSID: n.nsid, NR: uint8(len(data)/capsule.DSMRangeSize - 1), AD: true}
	return n.command(ctx, m.SQE(0, capsule.SGL{}), data)
}
