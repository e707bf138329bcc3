package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A liveRegion is the real registration of a Region.
type liveRegion struct {
	mr   *iwarp.MR // nil: it was closed
	mw   *iwarp.MW
	lent iwarp.RemoteBuffer
	dead *Mem // not nil: its octets must no longer be usable
}

// baseTO is the tagged offset of regions with odd numbers.
const baseTO = 1<<33 + 8

// memory makes the real memory of a Mem.
func (x *run) memory(m *Mem) *liveMem {
	l := newLiveMem(m.First)
	x.mems[m] = l
	return l
}

// register lends memory to the peer.
func (x *run) register(e *liveEnd, s *Step) (err error) {
	r := s.Region
	mem, pd := x.memory(r.Mem), x.hosts[e.Side].pd
	live := &liveRegion{}
	x.regions[r] = live
	x.note(e.End, false, "register r%d, %s, %d octets", r.number, r.Kind, len(mem.b))
	var o iwarp.MROptions
	if r.number%2 == 1 {
		o.BaseTO = baseTO
	}
	rights := stag.LocalWrite | stag.Remote
	switch r.Kind {
	case "fast", "window":
		return x.enable(e, s, live, mem, o.BaseTO)
	case "buffer":
		live.mr, err = pd.RegisterBuffer(&buffer{b: mem.b}, rights, &o)
	case "bound":
		o.QP = e.qp
		fallthrough
	default:
		o.Durable = &flusher{from: mem.b, to: x.memory(r.Durable).b}
		live.mr, err = pd.RegisterMR(mem.b, rights, &o)
	}
	if err == nil {
		live.lent = live.mr.Advertise(0, len(mem.b))
	}
	return err
}

// enable posts a fast registration, or binds a window.
func (x *run) enable(e *liveEnd, s *Step, live *liveRegion, mem *liveMem, to uint64) (err error) {
	pd, w := x.hosts[e.Side].pd, s.Work
	wr := iwarp.SendWR{ID: w.ID, Op: w.Op, Flags: w.Flags, Access: stag.Remote, Remote: iwarp.RemoteBuffer{TO: to}}
	if before := x.regions[s.Region.Before]; before != nil {
		live.mr, live.mw = before.mr, before.mw
		before.mr, before.mw, before.dead = nil, nil, nil
	}
	if s.Region.Kind == "fast" {
		if live.mr == nil {
			if live.mr, err = pd.AllocMR(regionLen, stag.LocalWrite|stag.Remote, &iwarp.MROptions{QP: e.qp}); err != nil {
				return err
			}
		}
		wr.MR, wr.Memory = live.mr, mem.b
		wr.Access |= stag.LocalWrite
		err = x.postAs(e, w, wr)
		live.lent = live.mr.Advertise(0, len(mem.b))
		return err
	}
	if live.mw == nil {
		if live.mw, err = pd.AllocMW(); err != nil {
			return err
		}
	}
	backing, err := pd.RegisterMR(mem.all, stag.LocalWrite|stag.MWBind, nil)
	if err != nil {
		return err
	}
	x.regions[&Region{Kind: "backing"}] = &liveRegion{mr: backing}
	wr.MW, wr.Local = live.mw, []iwarp.SGE{backing.Slice(guard, len(mem.b))}
	err = x.postAs(e, w, wr)
	live.lent = live.mw.Advertise(0, len(mem.b))
	return err
}

// revoke takes memory back.
func (x *run) revoke(e *liveEnd, s *Step) error {
	live := x.regions[s.Region]
	x.note(e.End, false, "%s r%d", s.How, s.Region.number)
	switch {
	case s.How == "close":
		return live.close(x.ctx)
	case live.mw != nil:
		return live.mw.Invalidate(x.ctx)
	}
	live.ends(s.Region)
	return live.mr.Invalidate(x.ctx)
}

// close closes the objects that exist.
func (l *liveRegion) close(ctx context.Context) error {
	var err error
	if l.mw != nil {
		err = l.mw.CloseContext(ctx)
	}
	if l.mr != nil {
		err = errors.Join(err, l.mr.CloseContext(ctx))
	}
	l.mr, l.mw = nil, nil
	return err
}

// invalidated records that w was performed, if it invalidates an STag.
func (x *run) invalidated(w *Work) {
	switch {
	case w.Inval != nil:
		x.regions[w.Inval].ends(w.Inval)
	case w.Op == iwarp.OpRDMAReadInvalidate:
		x.sinks[w.Local.mem].dead = w.Local.mem
	}
}

// ends records that r, the Region of l, was invalidated. Work that uses a region of fast registration is refused when
// it is executed, not when it is posted.
func (l *liveRegion) ends(r *Region) {
	if r.Kind != "fast" {
		l.dead = r.Mem
	}
}

// checkDead checks that invalidated regions cannot be used locally either.
func (x *run) checkDead(conn int) error {
	for _, live := range x.regions {
		if live.mr == nil || live.dead == nil || live.dead.End.Conn != conn {
			continue
		}
		e := x.ends[live.dead.End]
		err := e.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{live.mr.Slice(0, 1)}})
		if !errors.Is(err, iwarp.ErrInvalidSTag) {
			return fmt.Errorf("%s was invalidated, but a work request that uses it is answered with: %w", live.dead.Name, asError(err))
		}
		live.dead = nil // one check is enough
	}
	return nil
}

func asError(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// A buffer is memory that is registered as a Buffer.
type buffer struct {
	mu sync.Mutex
	b  []byte
}

func (b *buffer) Size() int64 { return int64(len(b.b)) }

func (b *buffer) ReadAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := copy(p, b.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (b *buffer) WriteAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return copy(b.b[off:], p), nil
}

// A flusher copies the octets that are made durable.
type flusher struct {
	from, to []byte
}

func (f *flusher) Flush(_ context.Context, off, n int64) error {
	copy(f.to[off:off+n], f.from[off:])
	return nil
}
