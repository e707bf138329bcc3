package rma

import (
	"context"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/stag"
)

const (
	sinkAccess   = stag.LocalWrite | stag.RemoteWrite
	sourceAccess = stag.RemoteRead
)

// A lease is an STag that the peer may use once, for one operation: to write to memory (a sink), or to
// read memory of the caller (a source). It is bound to the QP. A work request in front of the message
// that names the STag enables it, and the peer's answer invalidates it.
type lease struct {
	mr     *iwarp.MR
	mem    []byte // of a sink; nil: the caller's
	access stag.Access
	index  uint32
	key    uint8
	role   op.Role
	id     op.ID  // of the operation, 0: none
	unsent uint64 // the number of work requests up to the message that names the STag; 0: it was sent
}

// tag returns the STag that the peer knows.
func (l *lease) tag() stag.STag { return stag.STag(l.index<<8 | uint32(l.key)) }

// leases are the leases of one connection.
type leases struct {
	pd      *iwarp.PD
	qp      *iwarp.QP
	scratch *scratch
	size    int // of the memory of a sink
	all     map[uint32]*lease
	taken   int // octets of scratch
}

func newLeases(pd *iwarp.PD, qp *iwarp.QP, s *scratch, size int) *leases {
	return &leases{pd: pd, qp: qp, scratch: s, size: size, all: make(map[uint32]*lease)}
}

// sink makes a lease with memory of its own; nil: no memory is left.
func (l *leases) sink(role op.Role) (*lease, error) {
	if !l.scratch.take(l.size) {
		return nil, nil
	}
	s, err := l.make(role, sinkAccess, make([]byte, l.size))
	if err != nil {
		l.scratch.give(l.size)
		return nil, err
	}
	l.taken += l.size
	return s, nil
}

// make makes a lease; mem is nil if it is for memory of the caller.
func (l *leases) make(role op.Role, access stag.Access, mem []byte) (*lease, error) {
	mr, err := l.pd.AllocMR(l.size, access, &iwarp.MROptions{QP: l.qp})
	if err != nil {
		return nil, err
	}
	s := &lease{mr: mr, mem: mem, access: access, index: mr.STag().Index(), key: mr.STag().Key(), role: role}
	l.all[s.index] = s
	return s, nil
}

// enable returns the work request that lends the octets of mem for an operation. The STag has a key that
// the peer cannot derive from earlier keys, and that none of the lease's last 128 operations had: a Write
// that an attacker replays names an STag that is invalid.
func (l *leases) enable(s *lease, id op.ID, mem []byte) (iwarp.SendWR, error) {
	key, err := s.mr.NextKey()
	if err != nil {
		return iwarp.SendWR{}, err
	}
	s.id, s.key = id, key
	return iwarp.SendWR{Op: iwarp.OpRegister, Flags: iwarp.Unsignaled, MR: s.mr, Memory: mem, Access: s.access, Key: &s.key}, nil
}

// role returns the role of the STag that a message about an operation has invalidated.
func (l *leases) role(tag stag.STag, id op.ID) op.Role {
	if tag == 0 {
		return op.NoRole
	}
	s := l.all[tag.Index()]
	if s == nil || s.id != id || s.tag() != tag {
		return op.OtherRole
	}
	return s.role
}

// close releases the leases whose MR closes can close. The peer uses none of them, but a work request of this side may still
// name one: such a lease stays, with its octets, until another close. Nothing else uses it any more.
func (l *leases) close(closes func(*iwarp.MR) error) {
	for _, s := range l.all {
		if closes(s.mr) != nil {
			continue
		}
		delete(l.all, s.index)
		l.scratch.give(len(s.mem))
		l.taken -= len(s.mem)
	}
}

// atOnce closes an MR. It fails if it would have to wait for work requests, because the peer determines how long that takes.
func atOnce(mr *iwarp.MR) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return mr.CloseContext(ctx)
}
