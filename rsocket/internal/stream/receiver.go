package stream

import "fmt"

// maxEmpty is how many messages without octets are taken in a row.
const maxEmpty = 1024

// A receiver accounts for the octets of the peer.
type receiver struct {
	half uint64
	key  uint32

	told uint64 // octets that the peer may write, in all
	got  uint64 // those that its messages say it has written
	read uint64 // those that the program has read

	credits uint64
	limit   uint64   // messages of data that the peer may send, in all
	count   uint64   // those that have come
	seq     uint64   // those whose octets have all been read
	toldSeq uint64   // seq when the limit was told last
	lengths []uint32 // what is left to read of each message that is not in seq
	empty   int      // messages without octets, the last ones
}

func newReceiver(cfg Config) receiver {
	return receiver{
		half: uint64(cfg.Half), key: cfg.Key, told: uint64(cfg.Half),
		credits: uint64(cfg.Credits), limit: uint64(cfg.Credits), lengths: make([]uint32, cfg.Credits),
	}
}

// arrived takes a message of n octets.
func (r *receiver) arrived(n uint64) error {
	if r.count == r.limit {
		return fmt.Errorf("%d messages of data, more than the credits for them", r.count+1)
	}
	if n > r.told-r.got {
		return fmt.Errorf("%d octets where there is room for %d", n, r.told-r.got)
	}
	r.empty++
	if n > 0 {
		r.empty = 0
	}
	if r.empty > maxEmpty {
		return fmt.Errorf("%d messages without octets in a row", r.empty)
	}
	r.lengths[r.count%r.credits] = uint32(n)
	r.count++
	r.got += n
	r.consume(0)
	return nil
}

func (r *receiver) readable() (off, n int) {
	size := 2 * r.half
	at := r.read % size
	return int(at), int(min(r.got-r.read, size-at))
}

// consume says that n more octets were read.
func (r *receiver) consume(n uint64) {
	r.read += n
	for r.seq < r.count {
		length := &r.lengths[r.seq%r.credits]
		if n < uint64(*length) {
			*length -= uint32(n)
			return
		}
		n -= uint64(*length)
		r.seq++
	}
}

// freeHalf reports whether a half may be told to a peer with so many slots: all halves but the last
// one were read, and the slot that is written next is used up.
func (r *receiver) freeHalf(slots uint32) bool {
	filling := (r.told - r.got + r.half - 1) / r.half
	return r.told-r.read <= r.half && filling < uint64(slots)
}

// owesCredits reports whether so many messages were read that a new limit should be told, also
// without a half: small messages use up credits long before they fill one.
func (r *receiver) owesCredits() bool { return r.seq-r.toldSeq >= max(r.credits/2, 1) }

// starves reports whether the peer can send no data before it has polled the next SGL.
func (r *receiver) starves() bool { return r.told == r.got || r.count == r.limit }

// proof is what shows that the peer has polled the SGL that is told next.
func (r *receiver) proof() proof {
	p := proof{messages: r.limit, octets: noOctets}
	if r.told == r.got {
		p.octets = r.told
	}
	return p
}

// tell says that the limit is told, and with it a half.
func (r *receiver) tell(half bool) {
	r.toldSeq = r.seq
	r.limit = r.seq + r.credits
	if half {
		r.told += r.half
	}
}
