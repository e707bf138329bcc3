package rmaperf

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/rma"
)

// mostFailure is how many times the p50 of a read the p50 of a refusal may be.
const mostFailure = 1.2

// failures compares the latency of operations that the server refuses with that of a read of smallSize octets, in turn on one
// connection.
func (b *bench) failures() error { return b.on((*stand).staleEpoch, (*stand).fullQueue) }

// end connects to a service until close.
func (s *stand) end(addr string, what *service, slots int) (*end, error) {
	cfg, err := clientConfig(what.Sealed, what.MaxOp)
	if err != nil {
		return nil, err
	}
	return s.endWith(addr, what, cfg, slots)
}

func (s *stand) endWith(addr string, what *service, cfg rma.ClientConfig, slots int) (*end, error) {
	e, err := dialEnd(s.b.ctx, addr, what, cfg, slots)
	if err == nil {
		s.ends = append(s.ends, e.close)
	}
	return e, err
}

// endOf connects to a service until close, and opens one of its regions.
func (s *stand) endOf(addr string, what *service, slots int, region uint64) (*end, *rma.Handle, error) {
	e, err := s.end(addr, what, slots)
	if err != nil {
		return nil, nil, err
	}
	h, err := e.open(region)
	return e, h, err
}

// sealedService returns a service with a number of regions of smallSize octets, with keys.
func (b *bench) sealedService(regions int) *service {
	return &service{Kind: kindRMA, CRC: b.opts.CRC, Sealed: true, MaxOp: 4 * kib, Regions: regions, Size: smallSize}
}

// staleEpoch reads with keys that another client has invalidated.
func (s *stand) staleEpoch() error {
	what := s.b.sealedService(2)
	addr, err := s.open(what)
	if err != nil {
		return err
	}
	e, good, err := s.endOf(addr, what, 1, 1)
	if err != nil {
		return err
	}
	stale, err := e.open(2)
	if err != nil {
		return err
	}
	_, theirs, err := s.endOf(addr, what, 1, 2)
	if err != nil {
		return err
	}
	if err := theirs.Rekey(s.b.ctx, nil, 0); err != nil {
		return err
	}
	read := e.succeeds("read of 64 octets, beside those with a stale key", reads(good))
	refused := e.fails("read with a stale key", reads(stale), rma.RemoteAuth, rma.StaleEpoch)
	for range s.b.opts.Pairs {
		if err := s.b.block(read, refused); err != nil {
			return err
		}
	}
	s.b.noteTimes(read, refused)
	s.b.Marks.Most("AUTH (stale epoch), p50 against a 64-octet read", refused.against(read), mostFailure, "")
	return nil
}

// A queueFiller occupies the window of a server by the write of one connection, which waits for the region, and
// its queue by the write of another.
type queueFiller struct {
	s       *stand
	service int
	first   *end // its write occupies the window
	into    *rma.Handle
	second  *end // its write is in the queue
	behind  *rma.Handle
}

// fullQueue writes while the queue of the server is full.
func (s *stand) fullQueue() error {
	what := s.b.sealedService(1)
	what.Tight = true
	a, closed, err := s.b.open(what)
	if err != nil {
		return err
	}
	s.ends = append(s.ends, func() error { closed(); return nil })
	f := &queueFiller{s: s, service: a.Service}
	if f.first, f.into, err = s.endOf(a.Addr, what, 1, heldRegion); err != nil {
		return err
	}
	if f.second, f.behind, err = s.endOf(a.Addr, what, 2, 1); err != nil {
		return err
	}
	e, h, err := s.endOf(a.Addr, what, 1, 1)
	if err != nil {
		return err
	}
	read := e.succeeds("read of 64 octets, beside refused writes", reads(h))
	refused := e.fails("write to a server whose queue is full", writes(h), rma.NACK, rma.QueueFull)
	for range s.b.opts.Pairs {
		if err := f.fill(); err != nil {
			return err
		}
		err := s.b.block(read, refused)
		if err := errors.Join(err, f.drain()); err != nil {
			return err
		}
	}
	s.b.noteTimes(read, refused)
	s.b.Marks.Most("NACK (queue full), p50 against a 64-octet read", refused.against(read), mostFailure, "")
	return nil
}

// patience is how long the writes of a queueFiller wait.
const patience = 30 * time.Second

// fill fills the window and the queue.
func (f *queueFiller) fill() error {
	if _, err := f.s.b.do(order{Do: doHold, Service: f.service}); err != nil {
		return err
	}
	first, second := writes(f.into), writes(f.behind)
	first.Timeout, second.Timeout = patience, patience
	if _, err := f.first.portal.Post(first); err != nil {
		return err
	}
	if _, err := f.s.b.do(order{Do: doHeld, Service: f.service}); err != nil {
		return err
	}
	if _, err := f.second.portal.Post(second); err != nil {
		return err
	}
	_, _, err := f.second.does(reads(f.behind)) // the answer comes behind the write, even if it is a refusal
	return err
}

// drain lets both writes end.
func (f *queueFiller) drain() error {
	if _, err := f.s.b.do(order{Do: doRelease, Service: f.service}); err != nil {
		return err
	}
	for _, e := range []*end{f.first, f.second} {
		if _, err := e.portal.Wait(f.s.b.ctx, e.one[:]); err != nil {
			return err
		}
		if err := e.one[0].Err; err != nil {
			return fmt.Errorf("a write that had to wait: %w", err)
		}
	}
	return nil
}
