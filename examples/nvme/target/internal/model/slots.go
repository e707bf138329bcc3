package model

import "github.com/goiwarp/iwarp/examples/nvme/capsule"

// A stage is how far a command is.
type stage uint8

// The stages of a command. One that is not free is outstanding: its CID is in use.
const (
	free     stage = iota
	toFetch        // DoFetch was returned: no RDMA Read has been posted
	fetching       // the RDMA Read may be outstanding
	toFill         // DoFill was returned
	queued         // DoExecute was returned: the back end has not begun
	running        // the back end may be at work
	parked         // an Asynchronous Event Request that waits
)

// A slot holds an outstanding command.
type slot struct {
	stage   stage
	aborted bool // the response is StatusAbortRequested
	op      OpKind
	cid     uint16
	next    uint16 // the next one of the free list, or of the slots with the same hash; none ends the list
	gen     uint32 // from 1 on, so that no command has the zero Ref
	octets  uint64 // that the command moves, for the counters
	sqe     capsule.SQE
	data    capsule.Data
}

// none is no slot.
const none = 0xFFFF

// slots holds the commands outstanding on a queue: at most as many as there are receives. All memory is allocated at the start.
type slots struct {
	all     []slot
	heads   []uint16 // by the lower bits of the CID
	freed   uint16   // first of the free list
	running int      // slots whose stage is running
	used    int
}

func newSlots(depth int) slots {
	heads := 1
	for heads < depth {
		heads *= 2
	}
	s := slots{all: make([]slot, depth), heads: make([]uint16, heads)}
	for i := range s.heads {
		s.heads[i] = none
	}
	for i := range s.all {
		s.all[i].gen, s.all[i].next = 1, uint16(i+1)
	}
	s.all[depth-1].next = none
	return s
}

func (s *slots) head(cid uint16) *uint16 { return &s.heads[int(cid)&(len(s.heads)-1)] }

// find finds the command with a CID. It returns none if no such command is outstanding.
func (s *slots) find(cid uint16) uint16 {
	i := *s.head(cid)
	for i != none && s.all[i].cid != cid {
		i = s.all[i].next
	}
	return i
}

// take fills a slot with a command whose CID is not outstanding. It returns none if all slots are in use.
func (s *slots) take(c *capsule.SQE, d *capsule.Data) uint16 {
	i := s.freed
	if i == none {
		return none
	}
	sl := &s.all[i]
	s.freed = sl.next
	h := s.head(c.CID)
	sl.cid, sl.next, *h = c.CID, *h, i
	sl.sqe, sl.data = *c, *d
	sl.aborted, sl.op, sl.octets = false, 0, 0
	s.used++
	return i
}

// release frees a slot. References to it are stale from now on.
func (s *slots) release(i uint16) {
	sl := &s.all[i]
	at := s.head(sl.cid)
	for *at != i {
		at = &s.all[*at].next
	}
	*at = sl.next
	s.enter(i, free)
	sl.gen = max(sl.gen+1, 1)
	sl.data.Octets = nil // part of a buffer that the queue no longer owns
	sl.next, s.freed = s.freed, i
	s.used--
}

// enter changes the stage of a command.
func (s *slots) enter(i uint16, to stage) {
	sl := &s.all[i]
	if sl.stage == running {
		s.running--
	}
	if to == running {
		s.running++
	}
	sl.stage = to
}

// get finds a command by its reference. It returns nil if the command has ended.
func (s *slots) get(r Ref) *slot {
	if int(r.Slot) >= len(s.all) {
		return nil
	}
	sl := &s.all[r.Slot]
	if sl.stage == free || sl.gen != r.gen {
		return nil
	}
	return sl
}

func (s *slots) ref(i uint16) Ref { return Ref{Slot: i, gen: s.all[i].gen} }

// cancel ends all commands that no back end works on.
func (s *slots) cancel() {
	for i := range s.all {
		if st := s.all[i].stage; st != free && st != running {
			s.release(uint16(i))
		}
	}
}
