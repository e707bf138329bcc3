package commit

import "sync/atomic"

// losses are the octets of a backing, or of a region, whose contents on the medium are unknown,
// since a write or a sync of them has failed: a system that has dropped a page reports the
// next sync as a success. They stay lost until they are written again.
//
// A write begins with began and ends with wrote. A mutex of the owner guards what is not
// atomic.
type losses struct {
	// ever is set when an octet is lost, and never cleared: a write that began before
	// must see it at its end.
	ever   atomic.Bool
	count  atomic.Uint64 // syncs that have lost octets
	octets octetSet
	why    error // of the last loss
}

// began returns the count of losses, for wrote, when a write begins.
func (l *losses) began() (count uint64) { return l.count.Load() }

// wrote records a write that has ended with err. A successful write ends the loss of its octets.
// If a sync has failed since began, it may have dropped them, so they are lost; they are also
// lost if the write itself has failed.
// Preconditions: the mutex is held.
func (l *losses) wrote(began uint64, r Range, err error) {
	if err == nil && l.count.Load() == began {
		l.octets.remove(r)
		return
	}
	l.because(err)
	l.octets.add(r)
}

// synced records a loss by a sync that has failed with err. The caller adds the octets.
// Preconditions: the mutex is held.
func (l *losses) synced(err error) {
	l.count.Add(1)
	l.because(err)
}

// because records why octets are lost.
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
