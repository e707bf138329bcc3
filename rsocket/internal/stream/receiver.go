package stream

import (
	"fmt"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// maxEmpty is how many messages without octets are accepted in a row.
const maxEmpty = 1024

// A receiver accounts for the octets of the peer.
type receiver struct {
	halves  [2]half
	next    int // the half that is told next
	reading int // the half that is read
	growth  growth

	told uint64 // octets that the peer may write, in all
	got  uint64 // octets that the peer has written, as its messages say
	read uint64 // octets that the program has read

	credits uint64
	limit   uint64   // messages of data that the peer may send, in all
	count   uint64   // messages of data that have come
	seq     uint64   // messages of data whose octets have all been read
	toldSeq uint64   // seq when the limit was told last
	lengths []uint32 // what is left to read of each message that is not in seq
	empty   int      // how many of the last messages had no octets
}

// A half is memory that the peer writes to.
type half struct {
	wire.Slot
	end uint64 // the octets that the peer has written in all when the half is full
}

func (h *half) size() uint64 { return uint64(h.Length) }

func newReceiver(cfg Config) receiver {
	first, second := wire.Slot{Key: cfg.Key, Length: cfg.Half}, wire.Slot{Key: cfg.Key, Addr: uint64(cfg.Half), Length: cfg.Half}
	return receiver{
		halves: [2]half{{first, uint64(cfg.Half)}, {second, 0}}, next: 1, told: uint64(cfg.Half),
		credits: uint64(cfg.Credits), limit: uint64(cfg.Credits), lengths: make([]uint32, cfg.Credits),
	}
}

// arrived takes a message of n octets.
func (r *receiver) arrived(n uint64) error {
	if err := r.mayArrive(); err != nil {
		return err
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
	r.add(n)
	return nil
}

// mayArrive returns an error if the peer had no credit for a message.
func (r *receiver) mayArrive() error {
	if r.count == r.limit {
		return fmt.Errorf("%d messages of data, more than the credits for them", r.count+1)
	}
	return nil
}

// add adds a message of n octets to the messages that are to be read.
func (r *receiver) add(n uint64) {
	r.lengths[r.count%r.credits] = uint32(n)
	r.count++
	r.got += n
	r.consume(0)
}

// readable returns the part of a half that may be read.
func (r *receiver) readable() (half, off, n int) {
	h := &r.halves[r.reading]
	if r.got == r.read {
		return r.reading, 0, 0
	}
	left := h.end - r.read
	return r.reading, int(h.size() - left), int(min(r.got-r.read, left))
}

// consume records that n more of the octets that readable has returned were read.
func (r *receiver) consume(n uint64) {
	if r.read += n; n > 0 && r.read == r.halves[r.reading].end {
		r.reading = 1 - r.reading
	}
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

// freeHalf reports whether a peer with so many slots may be told of a half: the half was read, and the slot that is written next
// is used up.
func (r *receiver) freeHalf(slots uint32) bool {
	filling := uint32(0)
	for i := range r.halves {
		if r.halves[i].end > r.got {
			filling++
		}
	}
	return r.halves[r.next].end <= r.read && filling < slots
}

// filling returns the half that the peer writes to next, or -1.
func (r *receiver) filling() int {
	for _, i := range []int{r.next, 1 - r.next} { // the half that is told next was told before the other
		if r.halves[i].end > r.got {
			return i
		}
	}
	return -1
}

// owesCredits reports whether enough messages were read to tell a new limit, even
// without a half: small messages use up credits long before they fill a half.
func (r *receiver) owesCredits() bool { return r.seq-r.toldSeq >= max(r.credits/2, 1) }

// starves reports whether the peer sends no data before it has polled the next SGL: it has no room, or no more credits than
// a peer like this side reserves, see account.mayData.
func (r *receiver) starves() bool {
	return r.told == r.got || r.count+min(spare, r.credits/2) >= r.limit
}

// proof returns the proof that the peer has polled the next SGL.
func (r *receiver) proof() proof {
	p := proof{messages: r.limit, octets: noOctets}
	if r.told == r.got {
		p.octets = r.told
	}
	return p
}

// tell records that the limit is told, and, if half is set, the next half.
func (r *receiver) tell(half bool) {
	r.toldSeq = r.seq
	r.limit = r.seq + r.credits
	if half {
		h := &r.halves[r.next]
		r.told += h.size()
		h.end = r.told
		r.next = 1 - r.next
	}
}
