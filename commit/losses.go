package commit

import "sync/atomic"

// losses are the octets of a backing, or of a region, of which it is unknown what the medium
// has, since a write or a sync of them has failed: a system that has dropped a page calls its
// next sync a success. They stay lost until they are written again.
//
// A write begins with began and ends with wrote. A mutex of the owner guards what is not
// atomic.
type losses struct {
	// ever: an octet has been lost. It is never false again: a write that began before
	// must find out when it ends.
	ever   atomic.Bool
	count  atomic.Uint64 // syncs that have lost octets
	octets octetSet
	why    error // of the last loss
}

// began is the moment at which a write begins.
func (l *losses) began() (count uint64) { return l.count.Load() }

// wrote notes a write that has ended, with err. Octets that were lost are as new if they were
// written since. If a sync has failed meanwhile, they may be among those that it has dropped,
// and so they are lost, too; and so they are if the write has failed.
// Preconditions: the mutex is held.
func (l *losses) wrote(began uint64, r Range, err error) {
	if err == nil && l.count.Load() == began {
		l.octets.remove(r)
		return
	}
	l.because(err)
	l.octets.add(r)
}

// synced begins a loss by a sync that has failed with err. The caller adds the octets.
// Preconditions: the mutex is held.
func (l *losses) synced(err error) {
	l.count.Add(1)
	l.because(err)
}

// because notes why octets are lost.
func (l *losses) because(err error) {
	l.ever.Store(true)
	switch c := codeOf(err); c {
	case OK:
		l.why = ErrDataLost
	case ReadOnly:
		l.why = coded(c, err)
	default:
		l.why = coded(DataLost, err)
	}
}

// told returns why an octet of r is lost, or nil if none is. Preconditions: the mutex is held.
func (l *losses) told(r Range) error {
	if l.ever.Load() && l.octets.has(r) {
		return l.why
	}
	return nil
}
