package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
)

const (
	stepTimeout = 2 * time.Second // for each step of a new writer at a target
	retryAfter  = 50 * time.Millisecond
	mostAtOnce  = 1 << 20 // octets of one Commit, or one Read
)

// A link is the writer's connection to one target.
type link struct {
	w    *writer
	addr string

	acked uint64 // tail that is durable there; guarded by the writer's lock

	qp   *iwarp.QP
	file iwarp.RemoteBuffer
	in   *iwarp.MR // of mem
	mem  []byte    // octets that were read from the target
}

// dial connects, and returns the target's mark, and the last term that the target has recorded.
func (l *link) dial(ctx context.Context) (m mark, term uint16, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	qp, err := l.w.rnic.Dial(ctx, "tcp", l.addr, &iwarp.QPConfig{PD: l.w.pd, Commit: &iwarp.CommitOptions{Negotiate: true}})
	if err != nil {
		return mark{}, 0, err
	}
	l.qp = qp
	if err := l.file.UnmarshalBinary(qp.PrivateData()); err != nil {
		return mark{}, 0, err
	}
	if _, _, ok := qp.CommitLimits(); !ok || uint64(l.file.Len) < l.w.room() {
		return mark{}, 0, fmt.Errorf("target %s serves no Commit, or its file is too short", l.addr)
	}
	head, err := l.read(ctx, markAt, termAt+8)
	if err != nil {
		return mark{}, 0, err
	}
	return markOf(binary.LittleEndian.Uint64(head[markAt:])), uint16(binary.LittleEndian.Uint64(head[termAt:])), nil
}

// claim makes a term durable at the target as the last one taken.
func (l *link) claim(ctx context.Context, term uint16) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	f := iwarp.FollowOn{At: l.at(termAt, 8)}
	binary.BigEndian.PutUint64(f.Value[:], uint64(term))
	return l.qp.CommitThen(ctx, f)
}

// hangUp returns when nothing more is read from the target.
func (l *link) hangUp() {
	if l.qp != nil {
		_ = l.qp.Abort()
		<-l.qp.Done()
	}
	l.qp = nil
}

// at returns n octets of the target's file, from off.
func (l *link) at(off uint64, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: l.file.STag, TO: l.file.TO + off, Len: uint32(n)}
}

// read reads at most mostAtOnce octets of the file, which are valid until the next read.
func (l *link) read(ctx context.Context, off uint64, n int) ([]byte, error) {
	err := l.qp.RDMARead(ctx, l.in.Slice(0, n), l.at(off, n))
	return l.mem[:n], err
}

// mark makes m durable once the octets from off to m.tail are durable: the Commit covers
// them, and only its success moves the mark.
func (l *link) mark(ctx context.Context, m mark, off uint64) error {
	f := iwarp.FollowOn{At: l.at(markAt, 8)}
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
			if m, _, err = l.dial(ctx); err == nil {
				err = l.claim(ctx, l.w.term) // before its mark contains the term: see meet
			}
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

// replicate writes the records that the target lacks, as they are appended.
func (l *link) replicate(ctx context.Context, m mark) (err error) {
	if m.term == l.w.term {
		// Octets that an earlier connection has stored may not be durable.
		err = l.mark(ctx, m, m.tail)
	} else {
		m, err = l.bringUp(ctx, m)
	}
	for err == nil {
		l.w.acknowledge(l, m.tail)
		var end uint64
		if end, err = l.w.next(ctx, m.tail); err != nil {
			return err
		}
		if err = l.write(ctx, m.tail, end); err != nil {
			return err
		}
		from := m.tail
		m.tail = end
		err = l.mark(ctx, m, from)
	}
	return err
}

func (l *link) write(ctx context.Context, from, end uint64) error {
	n := int(end - from)
	return l.qp.RDMAWrite(ctx, l.at(from, n), l.w.log.Slice(int(from), n))
}

// bringUp makes the target's log equal to the adopted log, and returns its new mark. A log of another
// term may differ from ours in any record that is not written: such records are given up first. The
// target must not lose the part that it shares with ours meanwhile, since the adopted log may be lost.
// That part is written again all the same, because the target may be unable to make its copy durable.
func (l *link) bringUp(ctx context.Context, m mark) (mark, error) {
	l.w.acknowledge(l, 0)
	shared, err := l.shared(ctx, m.tail)
	if err == nil && shared < m.tail {
		err = l.mark(ctx, mark{m.term, shared}, shared)
	}
	for from := uint64(start); err == nil && from < l.w.base; from += mostAtOnce {
		err = l.write(ctx, from, min(from+mostAtOnce, l.w.base))
	}
	if err != nil {
		return mark{}, err
	}
	m = mark{l.w.term, l.w.base}
	return m, l.mark(ctx, m, start)
}

// shared returns the end of the records that begin both the target's log, up to tail, and the adopted
// log.
func (l *link) shared(ctx context.Context, tail uint64) (uint64, error) {
	w := l.w
	same, end := uint64(start), min(tail, w.base)
	for same < end {
		n := min(end-same, mostAtOnce)
		theirs, err := l.read(ctx, same, int(n))
		if err != nil {
			return 0, err
		}
		k := sameOctets(theirs, w.mem[same:same+n])
		same += uint64(k)
		if k < len(theirs) {
			break
		}
	}
	return start + uint64(wholeRecords(w.mem[start:same])), nil
}

// sameOctets returns the length of the common prefix of a and b, which have the same length.
func sameOctets(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
