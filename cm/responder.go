package cm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
)

// A responder is the session of the server.
type responder struct {
	session
	ctx      context.Context // for Authorize
	from     source
	listener net.Addr

	claim   claim
	failure *Error // of Open
	counted bool   // in the half-open set-ups
	shared  []byte // X25519
}

var _ iwarp.AuthSession = (*responder)(nil)

// Format prints the kind of session, and no secret.
func (r *responder) Format(s fmt.State, _ rune) { fmt.Fprint(s, "cm: session of a responder") }

// Open verifies the Request frame. The checks are in the order of their cost. Checks from which an
// attacker could learn about keys all take the same time.
func (r *responder) Open(frame []byte, off int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != stateNew || off < 0 || off > len(frame) {
		return nil, errOrder
	}
	r.state = stateFailed
	now := r.auth.cfg.Now()
	app, err := r.open(frame, off, now)
	if err != nil {
		r.report(err, now)
		return nil, err
	}
	r.state = stateRequested
	return app, nil
}

func (r *responder) open(frame []byte, off int, now time.Time) ([]byte, error) {
	if err := r.admit(now); err != nil {
		return nil, err
	}
	q, err := parseRequest(frame[off:])
	r.claim = claim{q.keyID, q.clientID, q.mode, q.suite, q.time}
	if err != nil {
		if isReason(err, ReasonNoBlock) && r.auth.cfg.AllowUnauthenticated {
			return frame[off:], r.authorize(iwarp.Peer{}, frame[off:])
		}
		return nil, err
	}
	if err := r.checkMode(&q, now); err != nil {
		return nil, err
	}
	if err := r.verify(frame, &q, now); err != nil {
		return nil, err
	}
	if q.mode == ModeA {
		if err := r.auth.fresh.admit(r.auth.cfg.Now, CacheKey{q.keyID, q.nonce}, q.time); err != nil {
			return nil, err
		}
	}
	if err := r.agree(&q); err != nil {
		return nil, err
	}
	e := r.keys.entry
	peer := newPeer(e.kind(), e.Group, q.clientID, &r.use)
	if err := r.authorize(peer, q.app); err != nil {
		return nil, err
	}
	r.peer = peer
	return q.app, nil
}

// admit does the checks that come before the frame is parsed.
func (r *responder) admit(now time.Time) error {
	switch r.auth.sources.verdict(r.from, now) {
	case verdictClosed:
		return &Error{Reason: ReasonSourceClosed}
	case verdictBlocked:
		return &Error{Reason: ReasonSourceBlocked}
	case verdictOpen:
	}
	if !r.auth.open.enter(r.from) {
		return &Error{Reason: ReasonHalfOpen}
	}
	r.counted = true
	return nil
}

// checkMode does the checks that come before the key is looked up.
func (r *responder) checkMode(q *request, now time.Time) error {
	cfg := &r.auth.cfg
	switch {
	case q.suite < cfg.MinSuite:
		return failure(ReasonVersion, "suite %d is below %d", q.suite, cfg.MinSuite)
	case q.mode == ModeA && !cfg.Accept.Has(ModeA):
		return failure(ReasonBlackout, "it is not accepted")
	case !cfg.Accept.Has(q.mode):
		return failure(ReasonMode, "mode %v", q.mode)
	case q.mode == ModeA && r.auth.fresh.dark(cfg.Now):
		return failure(ReasonBlackout, "this server does not know yet what was accepted before")
	case !r.auth.sources.mayVerify(now):
		return &Error{Reason: ReasonBudget}
	}
	return nil
}

// verify verifies MAC1, with the dummy key if the key is unknown. It does for each Request what a
// good one needs, and its errors carry no details, so that the time of a refusal reveals nothing
// about keys.
func (r *responder) verify(frame []byte, q *request, now time.Time) error {
	e := r.ring.lookup(q.keyID, now, r.auth.cfg.Retain)
	r.use = keyUse{q.keyID, q.clientID, q.suite, q.mode}
	keys := r.ring.keys(e, r.use)
	covered := len(frame) - macSize
	right := sameMAC(r.requestMAC(keys, frame[:covered]), frame[covered:])
	r.began(frame)
	if e == r.ring.dummy {
		return &Error{Reason: ReasonUnknownKey}
	}
	if !right {
		return &Error{Reason: ReasonBadMAC}
	}
	r.keys = keys
	return e.checkDates(now)
}

// requestMAC computes MAC1, and counts it.
func (r *responder) requestMAC(keys *frameKeys, covered []byte) []byte {
	r.auth.counts.hmacs.Add(1)
	return keys.request.sum(covered)
}

// agree computes the shared secret of a suite with public keys, which also checks the public key.
func (r *responder) agree(q *request) (err error) {
	if q.suite.publicLen() == 0 {
		return nil
	}
	if r.private, err = r.auth.ephemeral(); err != nil {
		return &Error{ReasonPublicKey, err}
	}
	r.shared, err = agree(r.private, q.public)
	return err
}

func (r *responder) authorize(p iwarp.Peer, app []byte) error {
	if r.auth.cfg.Authorize == nil {
		return nil
	}
	err := r.auth.cfg.Authorize(r.ctx, p, app)
	switch {
	case err == nil:
		return nil
	case r.ctx.Err() != nil: // the source cannot help it
		return &Error{ReasonNotJudged, err}
	default:
		return &Error{ReasonPolicy, err}
	}
}

// Overhead returns the size of the block of the Reply.
func (r *responder) Overhead() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overhead()
}

func (r *responder) overhead() int {
	if r.keys == nil {
		return 0
	}
	return replySize + r.use.suite.publicLen() + macSize
}

// Wrap makes the accepting Reply frame.
func (r *responder) Wrap(start, app []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != stateRequested {
		return nil, errOrder
	}
	if err := r.fits(r.overhead(), len(app)); err != nil {
		return nil, err
	}
	if r.keys == nil {
		r.auth.counts.plain.Add(1)
		r.ready()
		return append(start, app...), nil
	}
	nonce, err := r.auth.nonce()
	if err != nil {
		return nil, err
	}
	p := reply{
		suite: r.use.suite, mode: r.use.mode, serverID: r.auth.cfg.ID, time: r.now(),
		nonce: nonce, qpID: r.id, public: r.public(), app: app,
	}
	frame := p.append(start)
	frame = append(frame, r.replyMAC(&r.keys.reply, frame, nil)...)
	r.agreed(frame, r.shared)
	clear(r.shared)
	if r.use.mode == ModeB {
		r.state = stateQuarantine
	} else {
		r.ready()
	}
	return frame, nil
}

// ready ends the set-up.
func (r *responder) ready() {
	r.settle()
	clear(r.first)
	r.ctx, r.first, r.shared = nil, nil, nil
	r.auth.counts.accepted.Add(1)
	r.leave()
}

// leave stops counting the set-up as half-open.
func (r *responder) leave() {
	if r.counted {
		r.auth.open.leave(r.from)
		r.counted = false
	}
}

// FirstLen returns the length of the message that must come first; 0: none.
func (r *responder) FirstLen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.use.mode == ModeB {
		return firstSize
	}
	return 0
}

// VerifyFirst verifies the first message.
func (r *responder) VerifyFirst(msg []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != stateQuarantine {
		return errOrder
	}
	if err := r.verifyFirst(msg); err != nil {
		r.state = stateFailed
		err = &Error{ReasonBadFirst, err}
		r.report(err, r.auth.cfg.Now())
		return err
	}
	r.ready()
	return nil
}

func (r *responder) verifyFirst(msg []byte) error {
	s, m, mac, err := parseFirst(msg)
	if err != nil {
		return err
	}
	if s != r.use.suite || m != r.use.mode {
		return fmt.Errorf("suite %d and mode %v", s, m)
	}
	if !sameMAC(mac, r.first[headerSize:]) {
		return errors.New("a wrong MAC")
	}
	return nil
}

// First is for the other side.
func (r *responder) First() ([]byte, error) { return nil, errOrder }

// Close ends the session, and wipes its secrets. If the first message has not come by then, that
// counts as a failure of the peer.
func (r *responder) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == stateQuarantine {
		r.report(&Error{Reason: ReasonNoFirst}, r.auth.cfg.Now())
	}
	r.leave()
	clear(r.shared)
	r.wipe()
}

// report counts, charges and logs a refusal. It ignores other errors, which are failures of this side.
func (r *responder) report(err error, now time.Time) {
	var e *Error
	if !errors.As(err, &e) {
		return
	}
	r.failure = e
	a := r.auth
	a.counts.refused[e.Reason].Add(1)
	if e.Reason.charged() {
		a.sources.charge(r.from, now)
	}
	listener := ""
	if r.listener != nil {
		listener = r.listener.String()
	}
	a.log.add(AccessEvent{
		Time: now, Source: r.from.String(), Listener: listener, Reason: e.Reason,
		KeyID: r.claim.keyID, ClientID: r.claim.clientID, Mode: r.claim.mode, Suite: r.claim.suite,
		Age: r.claim.age(now),
	}, a.sources.mayLog(r.from, now))
}

func isReason(err error, r Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == r
}
