package op

// A Budget bounds the slots of all that draw from it.
type Budget struct{ left int }

// NewBudget returns a budget of n slots.
func NewBudget(n int) Budget { return Budget{left: n} }

// Take takes n slots, or none and ErrNoSlot.
func (b *Budget) Take(n int) error {
	if n > b.left {
		return ErrNoSlot
	}
	b.left -= n
	return nil
}

// Give gives n slots back.
func (b *Budget) Give(n int) { b.left += n }
