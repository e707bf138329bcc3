package model

import "github.com/goiwarp/iwarp/examples/nvme/capsule"

// ioCommand checks a command of an I/O queue, in the order in which statuses take precedence. It takes only the lock of
// the queue, and allocates nothing.
func (q *Queue) ioCommand(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	if q.ctrl.state() != ready {
		return q.reply(c.CID, d, failed(capsule.StatusSequenceError), out)
	}
	n, status := q.ctrl.namespace(c)
	if !status.OK() {
		return q.reply(c.CID, d, failed(status), out)
	}
	if status := check(c, n, d); !status.OK() {
		return q.reply(c.CID, d, failed(status), out)
	}
	op, nothing := q.ctrl.operation(c, n)
	switch {
	case nothing:
		return q.reply(c.CID, d, succeeded(0), out)
	case c.Direction() == capsule.HostToController && d.Kind == capsule.DataKeyed:
		if c.Opcode == capsule.OpDSM { // MDTS does not bound its data; more than the longest list is useless
			d.Length = min(d.Length, capsule.MaxDSMRanges*capsule.DSMRangeSize)
		}
		return q.later(DoFetch, toFetch, c, d, out)
	}
	return q.execute(c, d, &op, d.Octets, out)
}

// namespace finds the existing namespace that a command names; nil means all namespaces.
func (c *Controller) namespace(sqe *capsule.SQE) (*Namespace, capsule.Status) {
	switch sqe.Opcode {
	case capsule.OpFlush:
		if sqe.NSID == capsule.BroadcastNSID {
			return nil, capsule.Success
		}
	case capsule.OpRead, capsule.OpWrite, capsule.OpWriteZeroes, capsule.OpDSM:
	case capsule.OpCompare:
		if !c.t.cfg.Compare {
			return nil, capsule.StatusInvalidOpcode
		}
	default:
		return nil, capsule.StatusInvalidOpcode
	}
	n := c.sub.namespaces.Load().get(sqe.NSID)
	if n == nil {
		return nil, capsule.StatusInvalidNamespace
	}
	if sqe.Opcode == capsule.OpDSM && !n.Trims {
		return nil, capsule.StatusInvalidOpcode
	}
	return n, capsule.Success
}

// check checks the fields of a command on a namespace.
func check(c *capsule.SQE, n *Namespace, d *capsule.Data) capsule.Status {
	switch c.Opcode {
	case capsule.OpFlush:
		return capsule.Success
	case capsule.OpDSM:
		return capsule.ParseDSM(c).Check(&n.bounds, d)
	default:
		return capsule.ParseRW(c).Check(&n.bounds, d)
	}
}

// operation returns what a back end does for a checked command. nothing reports that there is nothing to do.
func (c *Controller) operation(sqe *capsule.SQE, n *Namespace) (op Op, nothing bool) {
	switch sqe.Opcode {
	case capsule.OpFlush:
		op = Op{Kind: OpFlush, Namespaces: c.sub.namespaces.Load().volatile}
		if n != nil {
			op.Namespaces = n.flush
		}
		return op, len(op.Namespaces) == 0 || n != nil && !n.Volatile
	case capsule.OpDSM:
		m := capsule.ParseDSM(sqe)
		return Op{Kind: OpTrim, Namespace: n, Ranges: m.Ranges(), FUA: c.cacheOff.Load()}, !m.AD
	default:
		return c.transfer(capsule.ParseRW(sqe), n), false
	}
}

// transfer returns what a back end does for Read, Write, Compare and Write Zeroes.
func (c *Controller) transfer(m capsule.RW, n *Namespace) Op {
	op := Op{Namespace: n, Offset: m.SLBA << n.lbads, Length: m.Blocks() << n.lbads, FUA: m.FUA || c.cacheOff.Load()}
	switch m.Opcode {
	case capsule.OpRead:
		op.Kind = OpRead
		op.FUA = m.FUA && n.Volatile
	case capsule.OpWrite:
		op.Kind = OpWrite
	case capsule.OpCompare:
		op.Kind, op.FUA = OpCompare, false
	default:
		op.Kind = OpWriteZeroes
		op.Unmap = m.DEAC && n.TrimmedZeroes
	}
	return op
}

// execute hands a command to the back end.
func (q *Queue) execute(c *capsule.SQE, d *capsule.Data, op *Op, octets []byte, out []Action) []Action {
	if status := op.setOctets(octets); !status.OK() {
		return q.reply(c.CID, d, failed(status), out)
	}
	out = q.later(DoExecute, queued, c, d, out)
	a := &out[len(out)-1]
	if a.Do == DoExecute {
		q.start(a, op)
	}
	return out
}

// start completes an action that hands a command to the back end.
func (q *Queue) start(a *Action, op *Op) {
	sl := &q.slots.all[a.Ref.Slot]
	sl.op, sl.octets = op.Kind, op.Length
	a.Op = *op
}

// setOctets gives the operation its data. All ranges are checked before any is trimmed.
func (o *Op) setOctets(octets []byte) capsule.Status {
	switch o.Kind {
	case OpWrite, OpCompare:
		o.Octets = octets
	case OpTrim:
		o.Octets = octets
		return capsule.CheckDSMRanges(&o.Namespace.bounds, octets, o.Ranges, o.Namespace.maxBlocks)
	default: // no data
	}
	return capsule.Success
}

// ioFetched continues a command whose data has arrived. The namespace may have changed meanwhile.
func (q *Queue) ioFetched(r Ref, octets []byte, out []Action) []Action {
	sl := q.slots.get(r)
	n, status := q.ctrl.namespace(&sl.sqe)
	if status.OK() {
		status = check(&sl.sqe, n, &sl.data)
	}
	if !status.OK() {
		return q.answer(r, failed(status), out)
	}
	op, _ := q.ctrl.operation(&sl.sqe, n)
	if status := op.setOctets(octets); !status.OK() {
		return q.answer(r, failed(status), out)
	}
	q.slots.enter(r.Slot, queued)
	out = append(out, Action{Do: DoExecute, Queue: q, Ref: r, Data: sl.data})
	q.start(&out[len(out)-1], &op)
	return out
}
