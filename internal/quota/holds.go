package quota

// A Hold is a resource that a T takes, which may fail, and later gives back.
type Hold[T any] struct {
	Take func(T) error
	Give func(T)
}

// Holds are taken in order, and given back in the reverse order.
type Holds[T any] []Hold[T]

// Take takes all of them for t. If one cannot be taken, Take takes none, and returns that error.
func (h Holds[T]) Take(t T) error {
	for i := range h {
		if err := h[i].Take(t); err != nil {
			h[:i].Give(t)
			return err
		}
	}
	return nil
}

// Give gives all of them back.
func (h Holds[T]) Give(t T) {
	for i := len(h) - 1; i >= 0; i-- {
		h[i].Give(t)
	}
}
