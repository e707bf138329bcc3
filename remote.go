package iwarp

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/stag"
)

// A RemoteMemory gives access to memory of the peer as an io.ReaderAt and io.WriterAt. It is
// safe for concurrent use.
type RemoteMemory struct {
	qp *QP
	rb RemoteBuffer
}

var (
	_ io.ReaderAt = (*RemoteMemory)(nil)
	_ io.WriterAt = (*RemoteMemory)(nil)
)

// Remote returns a RemoteMemory for rb. Every call of ReadAt or WriteAt registers the caller's
// slice while it runs; a program that transfers much data should register its memory once and
// post work requests.
func (qp *QP) Remote(rb RemoteBuffer) *RemoteMemory { return &RemoteMemory{qp: qp, rb: rb} }

// Size returns the length of the peer's memory in octets.
func (m *RemoteMemory) Size() int64 { return int64(m.rb.Len) }

// ReadAt reads len(p) octets at off by RDMA Read. If the memory ends first it reads the octets
// before the end, and returns io.EOF. On a QP with a Solicitor each RDMA Read has at most 64 KiB.
func (m *RemoteMemory) ReadAt(p []byte, off int64) (int, error) {
	at, n, err := m.at(off, len(p))
	if err != nil || n == 0 {
		return 0, err
	}
	mr, err := m.qp.cfg.PD.RegisterMR(p[:n], stag.LocalWrite, &MROptions{QP: m.qp})
	if err != nil {
		return 0, err
	}
	err = m.read(context.Background(), mr, at)
	if cerr := mr.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// read reads the octets at at into mr. On a QP with a Solicitor it does so in pieces, which leave
// space in the window to other Reads.
func (m *RemoteMemory) read(ctx context.Context, mr *MR, at RemoteBuffer) error {
	n := int(at.Len)
	piece, batch := m.qp.window.Pieces(n)
	if piece == n {
		return m.qp.RDMARead(ctx, mr.Slice(0, n), at)
	}
	for off := 0; off < n; {
		wrs := make([]SendWR, 0, batch)
		for ; off < n && len(wrs) < batch; off += piece {
			k := min(piece, n-off)
			wrs = append(wrs, SendWR{Op: OpRDMARead, Local: []SGE{mr.Slice(off, k)}, Remote: at.Slice(off, k)})
		}
		if _, err := m.qp.Do(ctx, wrs...); err != nil {
			return errors.Unwrap(err)
		}
	}
	return nil
}

// WriteAt writes the octets of p at off by RDMA Write. It returns when they have been handed
// to the network: see [QP.RDMAWrite]. If p does not fit before the end of the memory nothing
// is written.
func (m *RemoteMemory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || uint64(off)+uint64(len(p)) > uint64(m.rb.Len) {
		return 0, fmt.Errorf("%w: writing %d octets at %d of %d", ErrBounds, len(p), off, m.rb.Len)
	}
	if len(p) == 0 {
		return 0, nil
	}
	mr, err := m.qp.cfg.PD.RegisterMR(p, 0, &MROptions{QP: m.qp})
	if err != nil {
		return 0, err
	}
	at, _, err := m.at(off, len(p))
	if err == nil {
		err = m.qp.RDMAWrite(context.Background(), at, mr.Slice(0, len(p)))
	}
	if cerr := mr.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// at returns a RemoteBuffer for the n octets at off, or for those of them that exist.
func (m *RemoteMemory) at(off int64, n int) (RemoteBuffer, int, error) {
	if off < 0 {
		return RemoteBuffer{}, 0, fmt.Errorf("%w: offset %d", ErrBounds, off)
	}
	if n == 0 {
		return RemoteBuffer{}, 0, nil
	}
	if off >= int64(m.rb.Len) {
		return RemoteBuffer{}, 0, io.EOF
	}
	n = int(min(int64(n), int64(m.rb.Len)-off))
	return RemoteBuffer{STag: m.rb.STag, TO: m.rb.TO + uint64(off), Len: uint32(n)}, n, nil
}
