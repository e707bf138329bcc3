package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

const (
	// chunk is how many octets one work request moves.
	chunk = 1 << 20
	// inFlight is how many work requests are posted at a time: enough that the
	// connection never waits for this program, and at most the number of Reads that a
	// QP may have outstanding by default.
	inFlight = 16
)

// move moves the whole local file to or from the region of the peer, depending on op,
// and returns how long it took.
func (c *Client) move(ctx context.Context, op iwarp.Op, local fileBuffer, access stag.Access, remote region) (time.Duration, error) {
	if remote.Size != local.size {
		return 0, fmt.Errorf("the server offers %d octets for a file of %d", remote.Size, local.size)
	}
	mr, err := c.register(local, access)
	if err != nil {
		return 0, err
	}
	bar := newProgress(c.bar, op.String(), local.size)
	m := mover{qp: c.qp, op: op, local: mr, remote: remote, moved: bar.add}
	start := time.Now()
	if err = m.run(ctx); err == nil && op == iwarp.OpRDMAWrite {
		err = placed(ctx, c.qp)
	}
	took := time.Since(start)
	bar.end()
	if err != nil {
		// Outstanding work requests may refer to the file: none outlives the QP.
		_ = c.qp.Abort()
		err = fmt.Errorf("%v: %w", op, err)
	}
	if cerr := deregister(mr); err == nil {
		err = cerr
	}
	return took, err
}

// placed waits until all earlier RDMA Writes are placed at the peer. A Write completes
// when it has been handed to the network. The answer to an RDMA Read comes after
// the peer has placed everything before it, even if, as here, nothing is read.
func placed(ctx context.Context, qp *iwarp.QP) error {
	return qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{})
}

// A mover cuts a region into chunks and keeps several of them in flight.
type mover struct {
	qp     *iwarp.QP
	op     iwarp.Op
	local  *iwarp.MR
	remote region
	moved  func(n int64)

	posted, done int64
	flying       int
}

// run returns when every chunk has completed, or after the first error.
func (m *mover) run(ctx context.Context) error {
	var wcs [inFlight]iwarp.WC
	for m.done < m.remote.Size {
		if err := m.post(); err != nil {
			return err
		}
		n, err := m.qp.SendCQ().Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		for i := range wcs[:n] {
			if err := wcs[i].Err(); err != nil {
				return err
			}
			m.flying--
			m.done += int64(wcs[i].Len)
			m.moved(int64(wcs[i].Len))
		}
	}
	return nil
}

// post posts chunks until inFlight are outstanding.
func (m *mover) post() error {
	for ; m.flying < inFlight && m.posted < m.remote.Size; m.flying++ {
		n := int(min(chunk, m.remote.Size-m.posted))
		err := m.qp.PostSend(iwarp.SendWR{
			Op:     m.op,
			Local:  []iwarp.SGE{m.local.Slice(int(m.posted), n)},
			Remote: m.remote.at(m.posted, n),
		})
		if err != nil {
			return err
		}
		m.posted += int64(n)
	}
	return nil
}
