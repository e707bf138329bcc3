package quota

import "sync/atomic"

// IDs are identities of objects.
type IDs struct{ last atomic.Uint32 }

// Next returns a new identity. It is never zero.
func (i *IDs) Next() uint32 {
	for {
		if id := i.last.Add(1); id != 0 {
			return id
		}
	}
}
