package quota

import "sync/atomic"

// IDs are identities of objects. They decide which peer may use a region, so one must never come again while the process
// lives: 32 bits would not last two months of a server that takes a thousand connections a second.
type IDs struct{ last atomic.Uint64 }

// Next returns a new identity. It is never zero.
func (i *IDs) Next() uint64 { return i.last.Add(1) }
