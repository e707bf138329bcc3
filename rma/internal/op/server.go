package op

import "time"

// A Server is the state machine of the operations that the other side of a connection requests.
//
// A request that its Verdict refuses, or for which there is no room, is answered at once and has no
// record. Other requests have one:
//
//	state      timer     event            next state and actions
//	unused               a write          queued, Enqueue
//	                     other requests   serving, Serve
//	serving              Served           unused, SendAnswer; SendStatus if it failed, or if a read
//	                                      took as long as its TTL
//	queued     dispatch  Granted          pulled or reading, SendPull
//	                     timer            unused, Cancel, SendStatus(NACK, NoWindow)
//	                     Expired          unused, SendStatus(NACK, NoWindow)
//	                     Refused          unused, SendStatus(NACK, QueueFull)
//	                     Close            unused, Cancel, SendStatus(NACK, Closing)
//	                     Lost             unused, Cancel
//	pulled     Ts        DATA             opening, OpenData
//	                     STATUS, Lost     unused, Release
//	                     timer            fenced, Hold; or revoking, Hold, Revoke, Release, if Linger is 0
//	reading    Ts        Pulled           copying, Copy; if it failed unused, Release
//	                     STATUS           overrun
//	                     timer            overrun, Hold
//	                     Lost             unused, Release
//	opening    Ts        Opened, good     copying, Copy
//	                     Opened, bad      unused, Release, SendStatus(RemoteAuth, BadData)
//	                     timer, Lost      dropping
//	copying    Ts        Copied           unused, Release, SendAnswer; SendStatus if it failed;
//	                                      nothing if it was too late
//	                     timer            finishing
//	finishing            Copied           as from copying
//	fenced     Linger    DATA, STATUS,
//	                     Lost             unused, Release
//	                     timer            revoking, Revoke, Release
//	revoking             DATA, STATUS     revoking
//	                     Revoked          unused
//	overrun    Linger    STATUS           overrun
//	                     Pulled, Lost     unused, Release
//	                     timer            overrun, Revoke
//	                     Revoked          overrun, End
//	dropping             Opened           unused, Release
//
// Each transition to unused also has Free. After Lost nothing is sent. A message that is not in the
// table ends the connection, except a STATUS, which may come for an operation that has ended.
//
// Operations that have timed out at the client are dropped without an answer: it knows already.
type Server struct {
	cfg      ServerConfig
	clock    clock
	phase    phase
	records  []record
	unused   []int32
	queue    int // records in queued and serving
	live     int // records that the client counts as unanswered
	failures failures
	stats    ServerStats
}

// ServerConfig holds the values that the two sides have agreed on, and those of the server. The
// caller has checked them.
type ServerConfig struct {
	Credits     int // requests that may be unanswered
	Records     int // operations that are unanswered, or whose sinks are not dead yet: at least Credits
	Queue       int // requests that may wait, for the window or to be served
	MaxOp       uint32
	Dispatch    [classes]time.Duration
	PullTimeout time.Duration
	Guard       time.Duration
	Linger      time.Duration
	Overhead    uint32 // octets that sealing adds
	// MaxFailures is how many authentication failures a second are allowed, not counting outdated keys.
	MaxFailures int
}

// ServerStats are counters.
type ServerStats struct {
	AuthFailures uint64
	Nacks        uint64
	Expired      uint64 // writes that were pulled and not copied in time
	Late         uint64 // messages and blobs that came too late, and were dropped
	LateCommits  uint64 // copies that ended so late that the client may have given up
}

// A recordState is the state of a request: see Server.
type recordState uint8

const (
	recordUnused recordState = iota
	recordServing
	recordQueued
	recordPulled
	recordReading
	recordOpening
	recordCopying
	recordFinishing // like recordCopying, but the client may have given up
	recordFenced
	recordRevoking
	recordOverrun  // its RDMA Read has not completed
	recordDropping // the caller has not finished with it
)

// A record is what the Server knows about a request.
type record struct {
	state  recordState
	kind   Kind
	class  Class
	names  bool // the request has named an STag
	source bool
	id     ID
	length uint32
	due    time.Duration // of its timer, in the states that have one
	limit  time.Duration // the end of a read's TTL
}

// timed reports whether the timer of a record runs.
func (r *record) timed() bool {
	switch r.state {
	case recordQueued, recordPulled, recordReading, recordOpening, recordCopying, recordFenced, recordOverrun:
		return true
	default:
		return false
	}
}

// waits reports whether the record is in the queue.
func (r *record) waits() bool { return r.state == recordServing || r.state == recordQueued }

// unanswered reports whether the client counts the request as unanswered.
func (r *record) unanswered() bool {
	return r.state >= recordServing && r.state <= recordCopying
}

// NewServer returns a machine without operations.
func NewServer(cfg ServerConfig, now time.Time) *Server {
	n := max(cfg.Records, cfg.Credits)
	s := &Server{
		cfg: cfg, clock: newClock(now), records: make([]record, n), unused: make([]int32, 0, n),
		failures: newFailures(cfg.MaxFailures),
	}
	for i := n - 1; i >= 0; i-- {
		s.unused = append(s.unused, int32(i))
	}
	return s
}

// Stats returns the counters.
func (s *Server) Stats() ServerStats { return s.stats }

// Deadline returns when Tick has work next, or an earlier time. It reports false if there is no timer.
func (s *Server) Deadline() (time.Time, bool) { return s.clock.deadline() }

// Idle reports whether nothing is left: no request, no grant, no valid sink.
func (s *Server) Idle() bool { return len(s.unused) == len(s.records) }

// Answered reports whether the client waits for nothing: each request has its answer, or the time of its write is over.
func (s *Server) Answered() bool { return s.live == 0 }

// action returns an Action for a record.
func (s *Server) action(do Do, i int32) Action {
	r := &s.records[i]
	return Action{Do: do, Op: r.id, Record: int(i), Kind: r.kind, Class: r.class, Source: r.source}
}

// find returns the record of an operation.
func (s *Server) find(id ID) (int32, bool) {
	for i := range s.records {
		if r := &s.records[i]; r.id == id && r.state != recordUnused {
			return int32(i), true
		}
	}
	return none, false
}

// enter changes the state of a record.
func (s *Server) enter(i int32, to recordState) {
	r := &s.records[i]
	s.queue -= count(r.waits())
	s.live -= count(r.unanswered())
	r.state = to
	s.queue += count(r.waits())
	s.live += count(r.unanswered())
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// retire ends a record.
func (s *Server) retire(dst []Action, i int32) []Action {
	dst = append(dst, s.action(Free, i))
	s.enter(i, recordUnused)
	s.records[i] = record{}
	s.unused = append(s.unused, i)
	return dst
}

// release returns the grant of a write.
func (s *Server) release(dst []Action, i int32, r Refund) []Action {
	a := s.action(Release, i)
	a.Refund = r
	return append(dst, a)
}

// status answers with a failure, if there is a connection.
func (s *Server) status(dst []Action, i int32, v Verdict) []Action {
	if v.Outcome == NACK {
		s.stats.Nacks++
	}
	if s.phase == phaseLost {
		return dst
	}
	a := s.action(SendStatus, i)
	a.Outcome, a.Reason, a.RetryAfter, a.Invalidate = v.Outcome, v.Reason, s.retryAfter(v, a.Class), s.records[i].names
	return append(dst, a)
}

// retryAfter returns the hint in a NACK for lack of room: by then each write that waits now has had its
// turn or was refused; if writes wait without a limit, a write that is pulled now has ended by then.
// There is no hint for a request that was too late, nor from a server that is closing.
func (s *Server) retryAfter(v Verdict, class Class) time.Duration {
	switch {
	case v.Outcome != NACK, v.Reason != QueueFull && v.Reason != NoWindow:
		return 0
	case s.cfg.Dispatch[class] > 0:
		return s.cfg.Dispatch[class]
	default:
		return s.cfg.PullTimeout
	}
}

// answer sends the answer to a request, if there is a connection.
func (s *Server) answer(dst []Action, i int32) []Action {
	if s.phase == phaseLost {
		return dst
	}
	a := s.action(SendAnswer, i)
	a.Invalidate = s.records[i].names
	return append(dst, a)
}
