package op

import (
	"errors"
	"slices"
	"time"
)

// post posts the next operation.
func (w *world) post() {
	p := &w.params.plans[w.posted]
	actions, id, err := w.client.Post(w.buf[:0], w.clock(atClient), p.cmd)
	switch {
	case errors.Is(err, ErrNoSlot):
		return
	case err != nil:
		w.wrong("Post: %v", err)
		return
	}
	for _, o := range w.ops[:w.posted] {
		if o.id == id {
			w.wrong("ID %x is used again", id)
		}
		if !o.done && o.id.Slot() == id.Slot() {
			w.wrong("slot %d is used twice", id.Slot())
		}
	}
	w.ops[w.posted].id = id
	w.posted++
	w.act(atClient, actions)
}

// receive passes a message to the machine that it is for.
func (w *world) receive(role uint8, m *Message) {
	if want := [2]Role{ClientRole, ServerRole}[role]; m.Role() != want {
		w.wrong("a %d is for role %d, not %d", m.Type, m.Role(), want)
	}
	if role == atClient {
		w.act(atClient, w.client.Receive(w.buf[:0], w.clock(atClient), m))
	} else {
		w.act(atServer, w.server.Receive(w.buf[:0], w.clock(atServer), m))
	}
}

// tell reports a decision of the window to a machine.
func (w *world) tell(what stepKind, g *grant) {
	id, role := g.op, g.role
	if what == stepTell {
		g.at = grantHad
	} else {
		*g = grant{}
	}
	now := w.clock(role)
	switch {
	case what == stepTell && role == atClient:
		w.act(role, w.client.Granted(w.buf[:0], now, id))
	case what == stepTell:
		w.act(role, w.server.Granted(w.buf[:0], now, id))
	case what == stepExpire && role == atClient:
		w.act(role, w.client.Expired(w.buf[:0], now, id))
	case what == stepExpire:
		w.act(role, w.server.Expired(w.buf[:0], now, id))
	case role == atClient:
		w.act(role, w.client.Refused(w.buf[:0], now, id))
	default:
		w.act(role, w.server.Refused(w.buf[:0], now, id))
	}
}

// finish finishes a task.
func (w *world) finish(k *work) {
	job := *k
	o, p := w.ledger(job.op)
	now := w.clock(job.role)
	if job.kind == workCopy && p.copied == CopyClosing {
		*k = work{}
		w.act(job.role, w.server.Copied(w.buf[:0], now, job.op, CopyClosing))
		return
	}
	if job.kind == workCopy && p.copied != CopyLate && now.Before(epoch.Add(job.until)) {
		w.change(o)
		k.kind, k.until = workCopying, w.now+w.params.copying
		if w.params.copying > 0 {
			return
		}
		job = *k
	}
	*k = work{}
	switch job.kind {
	case workSeal:
		if p.unsent {
			w.act(job.role, w.client.Unsent(w.buf[:0], now, job.op))
			return
		}
		w.act(job.role, w.client.Sealed(w.buf[:0], now, job.op))
	case workOpen:
		if !p.bad {
			w.change(o)
		}
		w.act(job.role, w.client.Opened(w.buf[:0], now, job.op, !p.bad))
	case workServe:
		if p.cmd.Kind == Rekey && p.served.Outcome == OK {
			w.rekey(o)
		}
		w.act(job.role, w.server.Served(w.buf[:0], now, job.op, p.served))
	case workOpenData:
		w.act(job.role, w.server.Opened(w.buf[:0], now, job.op, !p.bad))
	case workCopy:
		w.act(job.role, w.server.Copied(w.buf[:0], now, job.op, CopyLate))
	case workCopying:
		w.change(o)
		w.act(job.role, w.server.Copied(w.buf[:0], now, job.op, p.copied))
	case workPulled:
		w.act(job.role, w.server.Pulled(w.buf[:0], now, job.op, job.good))
	case workLinger:
		w.sinks[job.role][job.record].valid = false
		w.add(work{kind: workRevoke, role: job.role, op: job.op, record: job.record, came: w.came[job.role]})
	case workRevoke:
		if job.role == atClient {
			w.act(job.role, w.client.Revoked(w.buf[:0], now, job.op))
		} else {
			w.act(job.role, w.server.Revoked(w.buf[:0], now, job.op))
		}
	case noWork:
	}
}

// change changes the region, or the buffer of a read.
func (w *world) change(o *ledger) {
	if o.done {
		w.wrong("operation %x changes something after outcome %d", o.id, o.outcome)
	}
	o.changed = true
}

// rekey gives the region its next key, possibly after a timeout.
func (w *world) rekey(o *ledger) {
	if o.done && o.outcome.NoEffect() {
		w.wrong("Rekey %x is done after outcome %d", o.id, o.outcome)
	}
	o.changed = true
}

// arrive is the arrival of a packet, before any machine is told.
func (w *world) arrive(role uint8, k packet) {
	s := &w.sinks[role][max(k.record, 0)]
	names := s.valid && s.op == k.op
	switch k.kind {
	case aMessage:
		if k.ends && !names {
			w.cut()
			return
		}
		if k.ends {
			s.valid = false
			k.msg.Invalidated = [2]Role{ClientRole, ServerRole}[role]
		}
		w.came[role]++
		w.heard[role].push(k)
	case aWrite:
		if !names {
			w.cut()
			return
		}
		s.written = true
		if o, p := w.ledger(k.op); role == atClient && p.cmd.Direct {
			w.change(o)
		}
	case aReadRequest:
		if !names {
			w.cut()
			return
		}
		w.up.push(packet{kind: aReadResponse, op: k.op, record: k.record})
	case aReadResponse:
		for i := range w.server.records {
			if r := &w.server.records[i]; r.id == k.op && r.state != recordUnused {
				w.add(work{kind: workPulled, role: atServer, op: k.op, record: i, good: true})
				return
			}
		}
		w.wrong("the server has forgotten its RDMA Read")
	case noPacket:
	}
}

func (w *world) add(k work) {
	for i := range w.work {
		if w.work[i].kind == noWork {
			w.work[i] = k
			return
		}
	}
	w.wrong("more work than there is room for")
}

// act performs an action of a machine.
func (w *world) act(role uint8, actions []Action) {
	w.buf = actions
	for _, a := range actions {
		switch {
		case a.Do >= Serve:
			w.actOfServer(&a)
		case a.Do >= SendRequest:
			w.actOfClient(&a)
		default:
			w.actOfBoth(role, &a)
		}
	}
}

func (w *world) grantOf(role uint8, id ID) *grant {
	for i := range w.grants {
		if g := &w.grants[i]; g.at != noGrant && g.op == id && g.role == role {
			return g
		}
	}
	return nil
}

func (w *world) actOfBoth(role uint8, a *Action) {
	g := w.grantOf(role, a.Op)
	switch a.Do {
	case Enqueue:
		for i := range w.grants {
			if w.grants[i].at == noGrant {
				w.grants[i] = grant{op: a.Op, role: role, at: grantQueued}
				return
			}
		}
		w.wrong("more grants than there is room for")
	case Cancel:
		switch {
		case g == nil || g.at > grantComing:
			w.wrong("Cancel of %x, which does not wait", a.Op)
		case g.at == grantQueued:
			*g = grant{}
		}
	case Hold:
		if g == nil || g.at != grantHad {
			w.wrong("Hold of %x, which has no grant", a.Op)
			return
		}
		g.at = grantHeld
	case Release:
		if g == nil || g.at < grantHad {
			w.wrong("Release of %x, which has no grant", a.Op)
			return
		}
		if a.Record != NoRecord && w.sinks[role][a.Record].valid && w.sinks[role][a.Record].op == a.Op && !w.lingers(role, a.Op) {
			w.wrong("Release of %x, whose sink may be hit", a.Op)
		}
		*g = grant{}
	case Revoke:
		w.revoke(role, a)
	case OpenData:
		s := &w.sinks[role][a.Record]
		if s.op != a.Op || s.valid || !s.written {
			w.wrong("%x is opened: %+v", a.Op, *s)
		}
		kind := workOpen
		if role == atServer {
			kind = workOpenData
		}
		w.add(work{kind: kind, role: role, op: a.Op, record: a.Record})
	case SendStatus:
		w.send(role, Message{Type: TypeStatus, Op: a.Op, Code: uint16(a.Outcome), Reason: a.Reason}, a.Invalidate)
	case Free:
		w.freed(role, a)
	case End:
		if !w.junked[role] && a.Why != NotRead { // in a world, a read may take any time
			w.wrong("role %d ends the connection: %d, %x", role, a.Why, a.Op)
		}
		w.ended = true
	default:
	}
}

// revoke makes an STag invalid at once, unless it is a sink with memory of its own.
func (w *world) revoke(role uint8, a *Action) {
	w.revokes++
	k := work{kind: workRevoke, role: role, op: a.Op, record: a.Record, came: w.came[role]}
	if role == atClient || !a.Source {
		s := &w.sinks[role][a.Record]
		if s.op != a.Op {
			w.wrong("Revoke of %x, which has no STag", a.Op)
		}
		if _, p := w.ledger(a.Op); p.cmd.Direct || p.cmd.Source {
			s.valid = false
		} else {
			k.kind, k.came = workLinger, 0
		}
	}
	w.add(k)
}

// lingers reports whether the sink of an operation is being revoked, and still valid.
func (w *world) lingers(role uint8, id ID) bool {
	return slices.ContainsFunc(w.work[:], func(k work) bool { return k.kind == workLinger && k.role == role && k.op == id })
}

// freed checks that nothing is left of an operation.
func (w *world) freed(role uint8, a *Action) {
	if g := w.grantOf(role, a.Op); g != nil && g.at != grantComing {
		w.wrong("Free of %x, which has a grant", a.Op)
	}
	if s := w.sinks[role][a.Record]; s.valid && s.op == a.Op {
		w.wrong("Free of %x, whose sink may be hit", a.Op)
	}
	for _, k := range w.work {
		if k.kind != noWork && k.op == a.Op && k.role == role && (k.kind != workRevoke || !a.Source) {
			w.wrong("Free of %x, for which a worker works", a.Op)
		}
	}
}

func (w *world) actOfClient(a *Action) {
	o, p := w.ledger(a.Op)
	switch a.Do {
	case SendRequest:
		types := [...]Type{Open: TypeOpenReq, Read: TypeReadReq, Write: TypeWriteReq, Rekey: TypeRekeyReq}
		if p.cmd.Kind == Read || p.cmd.Source {
			w.enable(atClient, a)
		}
		if g := w.grantOf(atClient, a.Op); p.cmd.Kind == Read && (g == nil || g.at != grantHad) {
			w.wrong("read %x is sent without a grant", a.Op)
		}
		w.send(atClient, Message{
			Type: types[p.cmd.Kind], Op: a.Op, Length: p.cmd.Length, Source: p.cmd.Source, Verdict: p.verdict, TTL: p.cmd.Timeout,
		}, false)
	case Seal:
		w.add(work{kind: workSeal, role: atClient, op: a.Op, record: a.Record})
	case SendData:
		w.sendPacket(atClient, packet{kind: aWrite, op: a.Op, record: w.sinkAtServer(a.Op)})
		w.send(atClient, Message{Type: TypeData, Op: a.Op, Length: p.cmd.Length}, true)
	case Complete:
		w.completed(o, p, a)
	default:
	}
}

func (w *world) completed(o *ledger, p *plan, a *Action) {
	switch {
	case o.done:
		w.wrong("%x is completed twice", a.Op)
	case a.Outcome == OK && !o.changed && (p.cmd.Kind == Read || p.cmd.Kind == Write):
		w.wrong("%x is OK, and nothing was changed", a.Op)
	case o.changed && a.Outcome.NoEffect() && !p.cmd.Direct:
		w.wrong("%x has outcome %d, and an effect", a.Op, a.Outcome)
	}
	for _, k := range w.work {
		if k.kind == workCopying && k.op == a.Op {
			w.wrong("%x is completed while it is copied", a.Op)
		}
		if k.op == a.Op && k.role == atClient && (k.kind == workSeal || k.kind == workOpen) {
			w.wrong("%x is completed while its buffer is used", a.Op)
		}
	}
	if s := w.sinks[atClient]; a.Record != NoRecord && (p.cmd.Direct || p.cmd.Source) && s[a.Record].valid && s[a.Record].op == a.Op {
		w.wrong("%x is completed while its buffer may be hit or read", a.Op)
	}
	o.done, o.outcome = true, a.Outcome
}

// enable makes the STag of a record valid, for a new operation.
func (w *world) enable(role uint8, a *Action) {
	s := &w.sinks[role][a.Record]
	if s.valid {
		w.wrong("the sink of %x is used for %x while it may be hit", s.op, a.Op)
	}
	for _, k := range w.work {
		if k.kind != noWork && k.role == role && k.record == a.Record && k.op != a.Op && k.op == s.op && (k.kind != workRevoke || !w.source(k.op)) {
			w.wrong("the sink of %x is used for %x while it is worked on", s.op, a.Op)
		}
	}
	*s = sink{op: a.Op, valid: true}
}

func (w *world) source(id ID) bool {
	_, p := w.ledger(id)
	return p.cmd.Source
}

// sinkAtServer and sinkAtClient return the records that a message has named: the STag of a record that has ended
// is not valid.
func (w *world) sinkAtServer(id ID) int { return w.sinkOf(atServer, id) }
func (w *world) sinkAtClient(id ID) int { return w.sinkOf(atClient, id) }

func (w *world) sinkOf(role uint8, id ID) int {
	for i := range w.sinks[role] {
		if w.sinks[role][i].op == id {
			return i
		}
	}
	return 0
}

func (w *world) actOfServer(a *Action) {
	_, p := w.ledger(a.Op)
	m := Message{Op: a.Op, Length: p.cmd.Length}
	switch a.Do {
	case Serve:
		w.add(work{kind: workServe, role: atServer, op: a.Op, record: a.Record})
	case SendAnswer:
		m.Type = [...]Type{Open: TypeOpenRep, Read: TypeReadDone, Write: TypeWriteDone, Rekey: TypeRekeyDone}[p.cmd.Kind]
		if p.cmd.Kind == Read {
			w.sendPacket(atServer, packet{kind: aWrite, op: a.Op, record: w.sinkAtClient(a.Op)})
		}
		w.send(atServer, m, a.Invalidate)
	case SendPull:
		if g := w.grantOf(atServer, a.Op); g == nil || g.at != grantHad {
			w.wrong("%x is pulled without a grant", a.Op)
		}
		m.Type, m.Timeout, m.Source = TypePull, w.server.cfg.PullTimeout, a.Source
		if !a.Source {
			w.enable(atServer, a)
		}
		w.send(atServer, m, false)
		if a.Source {
			w.sendPacket(atServer, packet{kind: aReadRequest, op: a.Op, record: w.sinkAtClient(a.Op)})
		}
	case Copy:
		w.add(work{kind: workCopy, role: atServer, op: a.Op, record: a.Record, until: a.Before.Sub(epoch)})
	case Audit:
		if a.Why == LateCommit {
			w.wrong("%x is a late commit", a.Op)
		}
	default:
	}
}

// send sends a message, which invalidates the STag that the peer has named for its operation.
func (w *world) send(role uint8, m Message, ends bool) {
	record := w.sinkOf(1-role, m.Op)
	waiting := w.heard[1-role].n
	for _, k := range [2]*packets{&w.up, &w.down}[role].list {
		if k.kind == aMessage {
			waiting++
		}
	}
	if waiting >= 2*w.client.cfg.Credits+1 {
		w.wrong("more messages than receives")
	}
	w.sendPacket(role, packet{kind: aMessage, msg: m, op: m.Op, record: record, ends: ends})
}

func (w *world) sendPacket(role uint8, k packet) {
	if w.dead {
		return
	}
	if role == atClient {
		w.up.push(k)
	} else {
		w.down.push(k)
	}
}

// pass is a step of time.
func pass(to time.Duration) step { return step{kind: stepTime, to: to} }
