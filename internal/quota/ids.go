package quota

import "sync/atomic"

// IDs issues identities of objects. Identities decide which peer may use a region, so none may recur while the process
// runs: 32 bits would not last two months on a server that accepts a thousand connections a second.
type IDs struct{ last atomic.Uint64 }

// Next returns a new identity. It is never zero.
func (i *IDs) Next() uint64 { return i.last.Add(1) }
