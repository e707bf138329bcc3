package cm

// RefuseLen returns how many octets Refuse adds to the application's data. They depend on the
// result of Open, not on the cause.
func (r *responder) RefuseLen(error) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refuseLen()
}

func (r *responder) refuseLen() int {
	switch {
	case r.isPlain():
		return 0
	case r.refusalCode().signed():
		return refusalSize + macSize
	default:
		return refusalSize
	}
}

// isPlain reports whether the peer was accepted without authentication.
func (r *responder) isPlain() bool { return r.state == stateRequested && r.keys == nil }

// refusalCode returns the code of a refusal: CodeApplication, once Open has found nothing
// wrong.
func (r *responder) refusalCode() Code {
	switch {
	case r.state == stateRequested:
		return CodeApplication
	case r.failure != nil:
		return r.failure.Reason.code()
	default:
		return CodeRefused
	}
}

// Refuse makes a Reply frame that refuses the connection. Only a refusal by the application may
// carry application data. If the source is blocked without replies, Refuse returns an error, and
// the connection is closed without a reply.
func (r *responder) Refuse(start, app []byte, cause error) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != stateNew && r.state != stateRequested && r.state != stateFailed {
		return nil, errOrder
	}
	if r.failure != nil && r.failure.Reason == ReasonSourceClosed {
		return nil, errNoReply
	}
	code := r.refusalCode()
	if code != CodeApplication && len(app) > 0 {
		return nil, errNoData
	}
	if err := r.fits(r.refuseLen(), len(app)); err != nil {
		return nil, err
	}
	plain := r.isPlain()
	r.state = stateFailed
	if plain {
		return append(start, app...), nil
	}
	j := refusal{code: code, signed: code.signed()}
	if code == CodeKeyRetired {
		j.keyHint = r.ring.primaryID()
	}
	frame := j.append(start)
	if !j.signed {
		return frame, nil
	}
	frame = append(frame, r.replyMAC(&r.keys.refusal, frame, app)...)
	return append(frame, app...), nil
}
