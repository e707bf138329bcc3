package iwarp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// AllocMR makes a region without octets, for fast registration: an OpRegister gives it
// memory or a Buffer, at most maxLen octets, as part of the work of a QP, and once it
// has been invalidated another may give it other ones. Nothing is copied, and
// nothing waits.
//
// access holds the rights that a registration may grant; what is not in it is refused
// (the Remote Access Flag of draft-hilland-rddp-verbs section 7.3.2.1 is that for the
// rights of a peer). The STag has the same index for as long as the region lives, and
// with each registration a new key that is hard to guess. Each registration brings its
// own base TO, so MROptions.BaseTO must be zero.
func (pd *PD) AllocMR(maxLen int, access stag.Access, opts *MROptions) (*MR, error) {
	switch {
	case maxLen < 0:
		return nil, fmt.Errorf("iwarp: AllocMR of a region of at most %d octets, less than 0", maxLen)
	case opts != nil && opts.Durable != nil:
		return nil, errors.New("iwarp: AllocMR of a durable region; durable is what was registered whole")
	case opts != nil && opts.BaseTO != 0:
		return nil, errors.New("iwarp: AllocMR with a BaseTO; each registration brings its own")
	}
	return pd.register(nil, access, opts, func(mr *MR, o stag.Options) (*stag.Region, error) {
		blank, err := pd.rnic.table.Allocate(uint64(maxLen), o)
		if err != nil {
			return nil, err
		}
		mr.blank = blank
		return blank.Live(), nil
	})
}

// fillRegister prepares a registration. All that can be wrong with it is told by its
// completion, for only then it is known which state the STag is in.
func (qp *QP) fillRegister(r *rdmap.Request, wr *SendWR) error {
	r.Kind = rdmap.KindRegister
	mr := wr.MR
	switch {
	case mr == nil || mr.blank == nil:
		return fmt.Errorf("iwarp: %v takes an MR of AllocMR", wr.Op)
	case mr.pd.rnic != qp.rnic:
		return fmt.Errorf("iwarp: %v: the MR belongs to another RNIC", wr.Op)
	case wr.Memory != nil && wr.Buffer != nil:
		return fmt.Errorf("iwarp: %v takes Memory or a Buffer, not both", wr.Op)
	}
	var err error
	r.Enable, err = mr.blank.PrepareKey(wr.Memory, wr.Buffer, wr.Access, wr.Remote.TO, wr.Key)
	return prepareError(wr.Op, err)
}

// fillInvalidate finds the STag that is meant, of an MR or MW by what is posted
// already.
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
	return fmt.Errorf("iwarp: %v: %w", op, clause{err})
}

// named makes what a work request prepared the one that the MR or MW speaks of: it is
// queued now.
func (wr *SendWR) named(r *stag.Region) {
	switch wr.Op {
	case OpBind:
		wr.MW.latest.Store(r)
	case OpRegister:
		wr.MR.latest.Store(r)
	default: // an invalidation: it names what is there
	}
}
