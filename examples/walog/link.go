package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
)

const (
	stepTimeout = 2 * time.Second // of what a new writer waits for at each target
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
	mem  []byte    // what was read from the target
}

// dial connects, and returns the target's mark, and the term that was taken last.
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

// claim makes a term durable as the one that was taken last.
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

// at is n octets of the target's file.
func (l *link) at(off uint64, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: l.file.STag, TO: l.file.TO + off, Len: uint32(n)}
}

// read reads octets of the file, mostAtOnce at most, which are good until the next read.
func (l *link) read(ctx context.Context, off uint64, n int) ([]byte, error) {
	err := l.qp.RDMARead(ctx, l.in.Slice(0, n), l.at(off, n))
	return l.mem[:n], err
}

// mark makes m durable, when the octets from off to m.tail are: the Commit covers them,
// and only its success moves the mark.
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
				err = l.claim(ctx, l.w.term) // before its mark has the term: see meet
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

// replicate writes what the target lacks, as it comes.
func (l *link) replicate(ctx context.Context, m mark) (err error) {
	if m.term == l.w.term {
		// What an earlier connection has stored is perhaps not durable.
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

// bringUp makes the target's log that which was adopted, and returns its new mark. A log of another
// term may differ from ours in any record that is not written: those are given up first. What it shares
// with ours it must not lose meanwhile, since the log that was adopted may be lost. That is written
// again all the same, for the target may be unable to make durable what it has.
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

// shared is the end of the records that the target's log, up to tail, begins with, and the adopted
// one, too.
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

// sameOctets is how many octets a and b, which are of one length, begin with that are equal.
func sameOctets(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
