package cm

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
)

// An initiator is the session of the client.
type initiator struct {
	session
	retry iwarp.Authenticator // after TRY_MODE_B; nil: none
}

var _ iwarp.AuthSession = (*initiator)(nil)

// Format prints the kind of session, and no secret.
func (i *initiator) Format(s fmt.State, _ rune) { fmt.Fprint(s, "cm: session of an initiator") }

// Overhead returns the size of the block of the Request.
func (i *initiator) Overhead() int { return requestSize + i.use.suite.publicLen() + macSize }

// Wrap makes the Request frame.
func (i *initiator) Wrap(start, app []byte) ([]byte, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state != stateNew {
		return nil, errOrder
	}
	if err := i.fits(i.Overhead(), len(app)); err != nil {
		return nil, err
	}
	nonce, err := i.auth.nonce()
	if err != nil {
		return nil, err
	}
	q := request{
		suite: i.use.suite, mode: i.use.mode, keyID: i.use.keyID, clientID: i.use.clientID,
		time: i.now(), nonce: nonce, qpID: i.id, public: i.public(), app: app,
	}
	frame := q.append(start)
	frame = append(frame, i.keys.request.sum(frame)...)
	i.began(frame)
	i.state = stateRequested
	return frame, nil
}

// Open verifies the Reply frame. For a signed refusal by the application it returns the
// application's data and no error: the frame's own header shows the refusal. Such a session does
// not become ready.
func (i *initiator) Open(frame []byte, off int) ([]byte, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state != stateRequested || off < 0 || off > len(frame) {
		return nil, errOrder
	}
	i.state = stateFailed
	h, _, err := parseHeader(frame[off:])
	if err != nil {
		return nil, err
	}
	if h.kind == typeRefusal {
		return i.openRefusal(frame, off)
	}
	app, err := i.openReply(frame, off)
	if err != nil {
		return nil, err
	}
	i.settle()
	i.auth.counts.connected.Add(1)
	return app, nil
}

func (i *initiator) openReply(frame []byte, off int) ([]byte, error) {
	p, err := parseReply(frame[off:])
	if err != nil {
		return nil, err
	}
	if p.suite != i.use.suite || p.mode != i.use.mode {
		return nil, failure(ReasonDowngrade, "suite %d and mode %v for suite %d and mode %v", p.suite, p.mode, i.use.suite, i.use.mode)
	}
	covered := len(frame) - macSize
	if !sameMAC(i.replyMAC(&i.keys.reply, frame[:covered], nil), frame[covered:]) {
		return nil, failure(ReasonBadMAC, "of the Reply")
	}
	peer := newPeer(KindServer, i.keys.entry.Group, p.serverID, &i.use)
	if i.auth.cfg.ExpectServer != nil {
		if err := i.auth.cfg.ExpectServer(peer); err != nil {
			return nil, &Error{ReasonPolicy, err}
		}
	}
	var shared []byte
	if i.private != nil {
		if shared, err = agree(i.private, p.public); err != nil {
			return nil, err
		}
	}
	i.agreed(frame, shared)
	clear(shared)
	i.peer = peer
	return p.app, nil
}

func (i *initiator) openRefusal(frame []byte, off int) ([]byte, error) {
	j, err := parseRefusal(frame[off:])
	if err != nil {
		return nil, err
	}
	if j.signed {
		fixed := off + refusalSize
		if !sameMAC(i.replyMAC(&i.keys.refusal, frame[:fixed], j.app), j.mac) {
			return nil, failure(ReasonBadMAC, "of the refusal")
		}
	}
	if j.code == CodeApplication {
		return j.app, nil
	}
	r := &Refusal{Code: j.code, Signed: j.signed}
	if j.code == CodeKeyRetired {
		r.KeyHint = j.keyHint
	}
	if j.code == CodeTryModeB {
		r.retry = i.retry
	}
	return nil, r
}

// First returns the message that proves that this side has seen the Reply. In mode A there is none.
func (i *initiator) First() ([]byte, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state != stateReady {
		return nil, errNotReady
	}
	return bytes.Clone(i.first), nil
}

// FirstLen returns the length of the message that First will return.
func (i *initiator) FirstLen() int {
	if i.use.mode == ModeB {
		return firstSize
	}
	return 0
}

// VerifyFirst is for the other side.
func (i *initiator) VerifyFirst([]byte) error { return errOrder }

// RefuseLen is for the other side.
func (i *initiator) RefuseLen(error) int { return 0 }

// Refuse is for the other side.
func (i *initiator) Refuse(_, _ []byte, cause error) ([]byte, error) {
	return nil, errors.Join(errOrder, cause)
}

// Close ends the session, and wipes its secrets.
func (i *initiator) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wipe()
}
