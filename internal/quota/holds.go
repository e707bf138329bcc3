package quota

// A Hold is something that is taken, which may fail, and later given back.
type Hold struct {
	Take func() error
	Give func()
}

// Holds are taken in order, and given back in the reverse order.
type Holds []Hold

// Take takes all of them. If one cannot be taken none is, and Take returns its error.
func (h Holds) Take() error {
	for i := range h {
		if err := h[i].Take(); err != nil {
			h[:i].Give()
			return err
		}
	}
	return nil
}

// Give gives all of them back.
func (h Holds) Give() {
	for i := len(h) - 1; i >= 0; i-- {
		h[i].Give()
	}
}
