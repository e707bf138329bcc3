package op

// A Transfer moves any number of octets by operations of bounded size, its chunks. The first failure
// ends it: no more chunks are begun, and it is finished when the chunks in flight have ended. Only
// chunks that were refused because the epoch of the key was over are repeated: the region is opened
// again for them once.
//
//	state      event                    next state
//	moving     the last chunk is done   finished
//	           a stale key              reopening, if that is allowed
//	           another failure          failing
//	reopening  Reopened                 moved, and the refused chunks are begun again; or failing
//	moved      as moving, but a stale key is a failure
//	failing    no chunk is left         finished
type Transfer struct {
	length   uint64
	size     uint64 // of a chunk
	next     uint64 // octets in chunks that were begun
	inFlight int
	state    transferState
	reopens  bool
	again    []Chunk // refused chunks to begin again
	prefix   uint64  // in transferFailing: where the first failed chunk begins
	failure  Verdict
}

type transferState uint8

const (
	transferMoving transferState = iota
	transferReopening
	transferMoved
	transferFailing
)

// A Chunk is a part of a Transfer.
type Chunk struct {
	Off   uint64
	N     uint32
	newer bool // begun with the key of the second opening
}

// Reset begins a transfer of length octets, in chunks of at most size octets. With reopen, a stale
// key is replaced once.
func (t *Transfer) Reset(length uint64, size uint32, reopen bool) {
	*t = Transfer{length: length, size: uint64(size), reopens: reopen, again: t.again[:0]}
}

// Ready reports whether there is a chunk to begin now.
func (t *Transfer) Ready() bool {
	return t.state != transferReopening && t.state != transferFailing && (len(t.again) > 0 || t.next < t.length)
}

// Next returns a chunk to begin. It reports false if there is none now.
func (t *Transfer) Next() (Chunk, bool) {
	if !t.Ready() {
		return Chunk{}, false
	}
	var c Chunk
	if n := len(t.again); n > 0 {
		c, t.again = t.again[n-1], t.again[:n-1]
	} else {
		c = Chunk{Off: t.next, N: uint32(min(t.size, t.length-t.next))}
		t.next += uint64(c.N)
	}
	c.newer = t.state == transferMoved
	t.inFlight++
	return c, true
}

// Done tells the Transfer how a chunk has ended. It reports whether the caller must open the region
// again, and then call Reopened.
func (t *Transfer) Done(c Chunk, v Verdict) (reopen bool) {
	t.inFlight--
	switch {
	case v.Outcome == OK:
	case t.reopens && !c.newer && t.state != transferFailing && v == Verdict{RemoteAuth, StaleEpoch}:
		t.again = append(t.again, c)
		reopen = t.state == transferMoving
		if reopen {
			t.state = transferReopening
		}
	default:
		t.fail(c, v)
	}
	return reopen
}

// Reopened tells the Transfer how the second opening has ended.
func (t *Transfer) Reopened(v Verdict) {
	switch {
	case t.state != transferReopening:
	case v.Outcome == OK:
		t.state = transferMoved
	default:
		t.fail(t.again[0], v)
	}
}

// fail ends the transfer before a chunk. The first failure is reported.
func (t *Transfer) fail(c Chunk, v Verdict) {
	if t.state != transferFailing {
		t.state, t.prefix, t.failure = transferFailing, c.Off, v
	}
	t.prefix = min(t.prefix, c.Off)
	for _, c := range t.again {
		t.prefix = min(t.prefix, c.Off)
	}
}

// Finished reports whether the transfer is finished, and then returns how many octets were moved
// without a gap from the first one on, and the first failure.
func (t *Transfer) Finished() (n uint64, failure Verdict, ok bool) {
	switch {
	case t.inFlight > 0:
		return 0, Verdict{}, false
	case t.state == transferFailing:
		return t.prefix, t.failure, true
	case len(t.again) > 0, t.next < t.length:
		return 0, Verdict{}, false
	}
	return t.length, Verdict{}, true
}
