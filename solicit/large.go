package solicit

// A bySize is a heap of entries, largest first.
type bySize []uint32

// largest returns the size of the largest entry, or 0 if there is none.
func (t *table) largest(h bySize) int64 {
	if len(h) == 0 {
		return 0
	}
	return t.entries[h[0]].n
}

// add puts an entry into the heap.
func (t *table) add(h *bySize, i uint32) {
	*h = append(*h, i)
	t.up(*h, len(*h)-1)
}

// drop removes an entry from the heap, if it is there.
func (t *table) drop(h *bySize, i uint32) {
	at := int(t.entries[i].heap) - 1
	if at < 0 {
		return
	}
	last := len(*h) - 1
	moved := (*h)[last]
	*h = (*h)[:last]
	t.entries[i].heap = 0
	if at == last {
		return
	}
	t.place(*h, at, moved)
	t.up(*h, at)
	t.down(*h, int(t.entries[moved].heap)-1)
}

func (t *table) place(h bySize, at int, i uint32) {
	h[at] = i
	t.entries[i].heap = int32(at) + 1
}

func (t *table) up(h bySize, at int) {
	i := h[at]
	for at > 0 {
		parent := (at - 1) / 2
		if t.entries[h[parent]].n >= t.entries[i].n {
			break
		}
		t.place(h, at, h[parent])
		at = parent
	}
	t.place(h, at, i)
}

func (t *table) down(h bySize, at int) {
	i := h[at]
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if r := child + 1; r < len(h) && t.entries[h[r]].n > t.entries[h[child]].n {
			child = r
		}
		if t.entries[h[child]].n <= t.entries[i].n {
			break
		}
		t.place(h, at, h[child])
		at = child
	}
	t.place(h, at, i)
}
