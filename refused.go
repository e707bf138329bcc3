package iwarp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/errtext"
)

// These functions make the errors for work requests that cannot be posted. They are separate
// from the code that every request runs, where they would cost time even if there is no error.

func errFlags(f Flags) error { return fmt.Errorf("iwarp: unknown Flags %#x", uint8(f&^allFlags)) }

func errSolicited(op Op) error { return fmt.Errorf("iwarp: %v cannot be Solicited", op) }

func errOp(op Op) error { return fmt.Errorf("iwarp: %v cannot be posted to a send queue", op) }

func errInline(n, most int) error {
	return fmt.Errorf("%w: %d octets inline, at most %d", ErrLimit, n, most)
}

func errSGEs(n, most int) error { return fmt.Errorf("%w: %d SGEs, at most %d", ErrLimit, n, most) }

func errLong(n uint64) error {
	return fmt.Errorf("%w: a message of %d octets, at most 2^32-1", ErrLimit, n)
}

// An sgeFault is the reason why an SGE is refused.
type sgeFault uint8

const (
	sgeFine sgeFault = iota
	sgeNoRegion
	sgeOtherPD
	sgeOtherQP
	sgeOutside
	sgeNoRight
	sgeInvalid
)

// errSGE returns the error for the i-th SGE.
func errSGE(i int, s *SGE, f sgeFault) error {
	return fmt.Errorf("iwarp: SGE %d: %w", i, errtext.Clause(f.of(s)))
}

func (f sgeFault) of(s *SGE) error {
	switch f {
	case sgeNoRegion:
		return errors.New("iwarp: no region: MR is nil")
	case sgeOtherPD:
		return fmt.Errorf("%w: the region belongs to another PD", ErrAccess)
	case sgeOtherQP:
		return fmt.Errorf("%w: the region belongs to another QP", ErrAccess)
	case sgeOutside:
		return fmt.Errorf("%w: %d octets at %d of %d", ErrBounds, s.Len, s.Off, s.MR.Len())
	case sgeNoRight:
		return fmt.Errorf("%w: the region lacks LocalWrite", ErrAccess)
	default:
		return fmt.Errorf("%w: %v was invalidated", ErrInvalidSTag, s.MR.STag())
	}
}
