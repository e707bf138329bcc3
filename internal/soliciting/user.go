package soliciting

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/transport"
)

// A User is the share of one queue pair in a Solicitor. A queue pair without a Solicitor has a nil
// User.
type User struct {
	s     *Solicitor
	limit error // matched by the error of a Read that is too long
	place place // guarded by s.mu

	next *place // to be kicked; owned by the receiving goroutine

	// Guarded by the lock of the stream.
	now      time.Time // of the last call of admit, except for the later Reads of a run
	back     []ended   // Reads that have completed in this series
	answered bool      // the receiving goroutine completes them, and calls Kick afterwards
}

// Join adds a user. Both functions make its stream look for data to send: post at once, for a caller
// without locks, and start in a new goroutine. The error of a Read that is too long matches limit.
func (s *Solicitor) Join(post, start func(), limit error) (*User, error) {
	if s == nil {
		return nil, errors.New("iwarp: the Solicitor was not made by NewSolicitor")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, fmt.Errorf("iwarp: Solicitor: %w", s.err)
	case s.closed:
		return nil, fmt.Errorf("iwarp: Solicitor closed: %w", net.ErrClosed)
	}
	s.users++
	return &User{s: s, limit: limit, place: place{post: post, start: start}}, nil
}

// Configure makes the stream of c ask before each Read, and return the grants.
func (u *User) Configure(c *rdmap.Config) {
	if u == nil {
		return
	}
	c.Admit = u.admit
	c.Events = events{c.Events, u}
}

// admit decides about the Read r.
func (u *User) admit(r *rdmap.Request) rdmap.Admission {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.InRun {
		u.now = s.now()
	}
	answer, grant := s.turns.ask(u.now, &u.place, solicit.Class(r.Class), r.Len)
	s.kick(nil)
	r.Grant = grant
	if answer == rdmap.Wait {
		s.setTimer(u.now)
	}
	return answer
}

// events are the events of a queue pair whose Reads have grants.
type events struct {
	rdmap.Events
	user *User
}

// Complete collects the grant of r, so that the lock is taken and the clock is read once per series.
func (e events) Complete(r *rdmap.Request, st rdmap.Status, code transport.Code) {
	if r.Grant != 0 {
		e.user.back = append(e.user.back, ended{r.Grant, outcome(st)})
		e.user.answered = r.Answered
	}
	e.Events.Complete(r, st, code)
}

// outcome returns what the end of a Read says about the path to the peer.
func outcome(st rdmap.Status) solicit.Outcome {
	if st == rdmap.StatusSuccess {
		return solicit.OK
	}
	return solicit.Failed
}

// Completed returns the grants, before the completions are in the CQ.
func (e events) Completed() {
	if u := e.user; len(u.back) > 0 {
		u.release()
	}
	e.Events.Completed()
}

func (u *User) release() {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns.release(s.now(), u.back)
	u.back = u.back[:0]
	if u.answered {
		s.kick(&u.next)
	} else {
		s.kick(nil)
	}
}

// Kick makes a stream send whose Read was granted the octets of Reads that have just completed. The
// receiving goroutine calls Kick after BatchDone, with no lock held, so that the stream need not wait
// for another goroutine.
func (u *User) Kick() {
	if u == nil || u.next == nil {
		return
	}
	p := u.next
	u.next = nil
	p.post()
}

// Leave notes that the queue pair is ending: no Read of it starts or waits any more. Grants of Reads
// that have started return as the Reads complete.
func (u *User) Leave() {
	if u == nil {
		return
	}
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns.leave(s.now(), &u.place)
	s.kick(nil)
}

// Close reverts Join. The queue pair has ended.
func (u *User) Close() {
	if u == nil {
		return
	}
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
}

// Waits returns the number of Reads that have waited, including a Read that waits now, and the time of
// the waits that have ended.
func (u *User) Waits() Waits {
	if u == nil {
		return Waits{}
	}
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return u.place.waits
}

// Fill checks a Read of n octets that is being posted, and stores its class in r.
func (u *User) Fill(r *rdmap.Request, c solicit.Class, n uint64) error {
	switch {
	case u == nil:
		return nil
	case c > solicit.Bulk:
		return errClass(c)
	case n > u.s.most:
		return u.errLong(n)
	}
	r.Class = uint8(c)
	return nil
}

func errClass(c solicit.Class) error {
	return fmt.Errorf("iwarp: an RDMA Read of unknown Class %d", uint8(c))
}

func (u *User) errLong(n uint64) error {
	return fmt.Errorf("%w: an RDMA Read of %d octets, the window of the Solicitor has at most %d", u.limit, n, u.s.most)
}

const (
	pieceLen = 64 << 10 // octets
	batchLen = 64       // Reads
)

// Pieces returns how many of the n octets of a transfer one Read requests, and how many Reads are
// posted together. Without a Solicitor, one Read requests all of them.
func (u *User) Pieces(n int) (octets, reads int) {
	if u == nil {
		return n, 1
	}
	return int(min(uint64(n), pieceLen, u.s.most)), batchLen
}
