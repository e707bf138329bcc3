package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// honest is how many honest queue pairs there are.
const honest = 8

// friends are the honest peers, and what the victim has for them.
type friends struct {
	v    *victim
	rnic *iwarp.RNIC // theirs
	pd   *iwarp.PD
	word []byte // by which the victim knows them
	all  []*friend

	seen    atomic.Pointer[func(iwarp.Event)] // besides
	mu      sync.Mutex
	next    uint64
	coming  map[uint64]*friend             // that dial
	waiting map[*iwarp.QP]chan iwarp.Event // for the end of a queue pair of the victim
	kinds   map[iwarp.EventKind]uint64
}

func newFriends(v *victim) (*friends, error) {
	f := &friends{
		v: v, word: make([]byte, 16), coming: make(map[uint64]*friend), waiting: make(map[*iwarp.QP]chan iwarp.Event), kinds: make(map[iwarp.EventKind]uint64),
	}
	_, _ = rand.Read(f.word)
	var err error
	if f.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	if f.pd, err = f.rnic.AllocPD(); err != nil {
		return nil, errors.Join(err, f.rnic.Close())
	}
	v.running.Go(f.events)
	v.running.Go(func() {
		for range f.rnic.Events() { // which else keep the queue pairs
		}
	})
	return f, nil
}

// also has events told to another part, too.
func (f *friends) also(tell func(iwarp.Event)) { f.seen.Store(&tell) }

// events takes all Events of the victim: those that attackers raise, and those of friends.
func (f *friends) events() {
	for e := range f.v.rnic.Events() {
		f.mu.Lock()
		f.kinds[e.Kind]++
		told := f.waiting[e.QP]
		delete(f.waiting, e.QP)
		f.mu.Unlock()
		if told != nil {
			told <- e
		}
		if tell := f.seen.Load(); tell != nil {
			(*tell)(e)
		}
	}
}

// counts is how many Events there were of each kind.
func (f *friends) counts() map[iwarp.EventKind]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.kinds)
}

func (f *friends) knows(cr *iwarp.ConnRequest) bool {
	return bytes.HasPrefix(cr.PrivateData(), f.word)
}

// accept makes the victim's end for a friend. A visitor waits for the Event of its end; others have their messages
// sent back to them.
func (f *friends) accept(cr *iwarp.ConnRequest) {
	peer := f.arrives(cr.PrivateData()[len(f.word):])
	if peer == nil {
		return
	}
	mr, err := f.v.own.RegisterMR(peer.theirs, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	if err != nil {
		peer.met <- err
		return
	}
	defer func() { _ = mr.Close() }()
	peer.remote = mr.Advertise(0, len(peer.theirs))
	qp, err := cr.Accept(f.v.ctx, &iwarp.QPConfig{PD: f.v.own})
	if err == nil {
		peer.server = qp
		f.mu.Lock()
		f.waiting[qp] = peer.end
		f.mu.Unlock()
	}
	peer.met <- err
	if err != nil {
		return
	}
	buf := make([]byte, receiveLen)
	echo, err := f.v.own.RegisterMR(buf, stag.LocalWrite, nil)
	if err != nil {
		return
	}
	defer func() { _ = echo.Close() }()
	for {
		n, err := qp.Recv(f.v.ctx, echo.Slice(0, len(buf)))
		if err != nil || qp.Send(f.v.ctx, echo.Slice(0, n)) != nil {
			break
		}
	}
	<-qp.Done()
}

// connect connects those that stay.
func (f *friends) connect(addr string) error {
	for range honest {
		p, err := f.dials(f.v.ctx, addr)
		if err != nil {
			return err
		}
		f.all = append(f.all, p)
	}
	return nil
}

// work has all friends work for a time, or until ctx ends, and returns how long their operations took.
func (f *friends) work(ctx context.Context, d time.Duration) *histogram {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	h := &histogram{}
	var all sync.WaitGroup
	for _, p := range f.all {
		all.Go(func() { p.works(ctx, h) })
	}
	all.Wait()
	return h
}

// wrong are the errors of the friends.
func (f *friends) wrong() []error {
	var errs []error
	for _, p := range f.all {
		if p.err != nil {
			errs = append(errs, p.err)
		}
	}
	return errs
}

func (f *friends) close() { _ = f.rnic.Close() }
