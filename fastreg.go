package iwarp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// AllocMR allocates a region for fast registration. The region has no memory at first. An
// OpRegister, posted to a QP, gives it memory or a Buffer of at most maxLen octets; after it
// has been invalidated, another OpRegister may give it different memory. Registration copies
// nothing and waits for nothing. The region retains its last memory or Buffer until the next
// OpRegister, or Close.
//
// access limits the rights that a registration may grant; a registration that asks for other
// rights is refused (for the rights of a peer, access is the Remote Access Flag of
// draft-hilland-rddp-verbs section 7.3.2.1). The index of the STag does not change during the
// life of the region; by default each registration chooses a new key that is hard to guess.
// Each registration sets its own base TO, so MROptions.BaseTO must be zero. Such a region cannot
// be durable: MROptions.Durable must be nil.
func (pd *PD) AllocMR(maxLen int, access stag.Access, opts *MROptions) (*MR, error) {
	switch {
	case maxLen < 0:
		return nil, fmt.Errorf("iwarp: AllocMR: maxLen is negative: %d", maxLen)
	case opts != nil && opts.Durable != nil:
		return nil, errors.New("iwarp: AllocMR: durable regions are not supported, use RegisterMR or RegisterBuffer")
	case opts != nil && opts.BaseTO != 0:
		return nil, errors.New("iwarp: AllocMR: MROptions.BaseTO is set; each OpRegister sets its own")
	}
	return pd.register(nil, access, opts, func(mr *MR, o stag.Options) (*stag.Region, error) {
		fast, err := pd.rnic.table.Allocate(uint64(maxLen), o)
		if err != nil {
			return nil, err
		}
		mr.fast = fast
		return fast.Live(), nil
	})
}

// NextKey returns a key for SendWR.Key of the next OpRegister of a region of [PD.AllocMR], for a
// caller that composes a message with the STag before it posts the OpRegister. A peer can hardly
// predict the key. It differs from the last 128 keys of the region, including keys that NextKey
// returned and that were not used. NextKey fails for any other MR, and if no randomness is
// available. It may be called from any goroutine.
func (mr *MR) NextKey() (uint8, error) { return mr.fast.NextKey() }

// fillRegister prepares a registration. The state of the STag is known only when the request
// is executed, so the completion reports errors that depend on it.
func (qp *QP) fillRegister(r *rdmap.Request, wr *SendWR, known []int64) error {
	r.Kind = rdmap.KindRegister
	mr := wr.MR
	switch {
	case mr == nil || mr.fast == nil:
		return fmt.Errorf("iwarp: %v takes an MR of AllocMR", wr.Op)
	case mr.pd.rnic != qp.rnic:
		return fmt.Errorf("iwarp: %v: the MR belongs to another RNIC", wr.Op)
	case wr.Memory != nil && wr.Buffer != nil:
		return fmt.Errorf("iwarp: %v takes Memory or a Buffer, not both", wr.Op)
	}
	var err error
	if wr.Buffer != nil {
		r.Enable, err = mr.fast.PrepareBuffer(wr.Buffer, known[0], wr.Access, wr.Remote.TO, wr.Key)
	} else {
		r.Enable, err = mr.fast.Prepare(wr.Memory, wr.Access, wr.Remote.TO, wr.Key)
	}
	return prepareError(wr.Op, err)
}

// sizes returns the sizes of the Buffers that work requests register, indexed like wrs, or nil if they register none. few
// is memory for the result. No lock may be held: the methods of a Buffer are code of the program, which may take a lock
// that another goroutine holds while it posts, and may panic.
func sizes(wrs []SendWR, few *[8]int64) (known []int64) {
	for i := range wrs {
		if wr := &wrs[i]; wr.Op == OpRegister && wr.Buffer != nil {
			if known == nil {
				known = slices.Grow(few[:0], len(wrs))[:len(wrs)]
			}
			known[i] = wr.Buffer.Size()
		}
	}
	return known
}

// fillInvalidate determines the STag to invalidate. For an MR or MW it is the STag after the
// requests posted so far.
func (qp *QP) fillInvalidate(r *rdmap.Request, wr *SendWR) error {
	r.Kind, r.Invalidate = rdmap.KindInvalidate, wr.Invalidate
	switch {
	case wr.MR == nil && wr.MW == nil:
		return nil
	case wr.Invalidate != 0 || wr.MR != nil && wr.MW != nil:
		return fmt.Errorf("iwarp: %v takes one of an STag, an MR and an MW", wr.Op)
	case wr.MR != nil && wr.MR.pd.rnic != qp.rnic || wr.MW != nil && wr.MW.pd.rnic != qp.rnic:
		return fmt.Errorf("iwarp: %v: the MW or MR belongs to another RNIC", wr.Op)
	case wr.MR != nil:
		r.Enable = wr.MR.region()
	default:
		r.Enable = wr.MW.latest.Load()
	}
	r.Invalidate = r.Enable.STag()
	return nil
}

func prepareError(op Op, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, stag.ErrInvalid):
		return fmt.Errorf("%w: %v: the MR or MW was closed", ErrInvalidSTag, op)
	}
	return fmt.Errorf("iwarp: %v: %w", op, errtext.Clause(err))
}

// named makes r, which the work request has prepared, the current region of its MR or MW. It
// is called when the work request is queued.
func (wr *SendWR) named(r *stag.Region) {
	switch wr.Op {
	case OpBind:
		wr.MW.latest.Store(r)
	case OpRegister:
		wr.MR.latest.Store(r)
	default: // an invalidation leaves the current region in place
	}
}
