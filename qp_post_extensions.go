package iwarp

import (
	"cmp"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// The work requests of RFC 7306. Those of RFC 5040 are in qp_post.go.

func fillImmediate(r *rdmap.Request, wr *SendWR) error {
	r.Kind, r.Imm = rdmap.KindImmediate, wr.Imm
	return noPayload(wr)
}

func fillAtomic(r *rdmap.Request, wr *SendWR) error {
	r.Kind = rdmap.KindAtomic
	if err := noPayload(wr); err != nil {
		return err
	}
	if err := fillRemote(r, wr, stag.AtomicLen); err != nil {
		return err
	}
	h := rdmap.AtomicRequest{Op: rdmap.FetchAdd, At: r.Remote, Data: wr.Add, Mask: wr.AddMask}
	if wr.Op != OpFetchAdd {
		h.Op, h.Data, h.Mask = rdmap.CompareSwap, wr.Swap, cmp.Or(wr.SwapMask, math.MaxUint64)
	}
	if wr.Op == OpCompareSwap { // a Swap compares nothing
		h.Compare, h.CompareMask = wr.Compare, cmp.Or(wr.CompareMask, math.MaxUint64)
	}
	r.Inline = h.Append(r.Inline[:0])
	return nil
}

func noPayload(wr *SendWR) error {
	if len(wr.Local) > 0 || len(wr.Inline) > 0 {
		return fmt.Errorf("iwarp: %v takes neither Local nor Inline", wr.Op)
	}
	return nil
}
