package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
)

const (
	dialTimeout = 2 * time.Second
	retryAfter  = 50 * time.Millisecond
	mostAtOnce  = 1 << 20 // octets of one Commit
)

// A link is the writer's connection to one target.
type link struct {
	w    *writer
	addr string

	acked uint64 // tail that is durable there; guarded by the writer's lock

	qp   *iwarp.QP
	file iwarp.RemoteBuffer
}

// dial connects, and returns the target's mark.
func (l *link) dial(ctx context.Context) (mark, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	qp, err := l.w.rnic.Dial(ctx, "tcp", l.addr, &iwarp.QPConfig{PD: l.w.pd, Commit: &iwarp.CommitOptions{Negotiate: true}})
	if err != nil {
		return mark{}, err
	}
	l.qp = qp
	if err := l.file.UnmarshalBinary(qp.PrivateData()); err != nil {
		return mark{}, err
	}
	if _, _, ok := qp.CommitLimits(); !ok || uint64(l.file.Len) < l.w.room() {
		return mark{}, fmt.Errorf("target %s serves no Commit, or its file is too short", l.addr)
	}
	word, err := l.read(ctx, 0, 8)
	if err != nil {
		return mark{}, err
	}
	return markOf(binary.LittleEndian.Uint64(word)), nil
}

func (l *link) hangUp() {
	if l.qp != nil {
		_ = l.qp.Abort()
	}
	l.qp = nil
}

// at is n octets of the target's file.
func (l *link) at(off uint64, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: l.file.STag, TO: l.file.TO + off, Len: uint32(n)}
}

// read reads octets of the file to where the writer has the same ones.
func (l *link) read(ctx context.Context, off uint64, n int) ([]byte, error) {
	if off > l.w.room() || uint64(n) > l.w.room()-off {
		return nil, errors.New("the target's log is longer than ours can be")
	}
	err := l.qp.RDMARead(ctx, l.w.scratch.Slice(int(off), n), l.at(off, n))
	return l.w.scratchMem[off : off+uint64(n)], err
}

// mark makes m durable, when the octets from off to m.tail are: the Commit covers them,
// and only its success moves the mark.
func (l *link) mark(ctx context.Context, m mark, off uint64) error {
	f := iwarp.FollowOn{At: l.at(0, 8)}
	binary.BigEndian.PutUint64(f.Value[:], m.word())
	if off == m.tail {
		return l.qp.CommitThen(ctx, f)
	}
	return l.qp.CommitThen(ctx, f, l.at(off, int(m.tail-off)))
}

// run keeps the target up to date until ctx ends. m is its mark, if it is connected.
func (l *link) run(ctx context.Context, m mark) {
	for ctx.Err() == nil {
		var err error
		if l.qp == nil {
			m, err = l.dial(ctx)
		}
		if err == nil {
			err = l.replicate(ctx, m)
		}
		l.hangUp()
		if err != nil && ctx.Err() == nil {
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
			}
		}
	}
}

// replicate writes what the target lacks, as it comes. A log of another term may differ
// from ours in any record: it is given up first, and then written anew.
func (l *link) replicate(ctx context.Context, m mark) error {
	term := l.w.term
	if m.term != term {
		if err := l.mark(ctx, mark{0, start}, start); err != nil {
			return err
		}
		m = mark{term, start}
	}
	for {
		l.w.acknowledge(l, m.tail)
		end, err := l.w.next(ctx, m.tail)
		if err != nil {
			return err
		}
		end = min(end, m.tail+mostAtOnce)
		n := int(end - m.tail)
		if err := l.qp.RDMAWrite(ctx, l.at(m.tail, n), l.w.log.Slice(int(m.tail), n)); err != nil {
			return err
		}
		from := m.tail
		m.tail = end
		if err := l.mark(ctx, m, from); err != nil {
			return err
		}
	}
}
