package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/stag"
)

// A link is a connection that this process has set up.
type link struct {
	to    int
	qp    *iwarp.QP
	where iwarp.RemoteBuffer // memory of the peer
	mem   []byte             // data, note and answer
	mr    *iwarp.MR
}

func (p *process) newLink(to int, qp *iwarp.QP) (*link, error) {
	l := &link{to: to, qp: qp, mem: make([]byte, p.size+noteLen+1)}
	if err := l.where.UnmarshalBinary(qp.PrivateData()); err != nil {
		return nil, err
	}
	var err error
	l.mr, err = p.pd.RegisterMR(l.mem, stag.LocalWrite, nil)
	return l, err
}

// dial sets up connections to others, all at once. After an error it leaves none open.
func (p *process) dial(ctx context.Context, c *command, retry func(cm.Target, error, int) (time.Duration, bool)) (links []*link, attempts int, err error) {
	targets := func(yield func(cm.Target) bool) {
		for _, i := range p.others(c) {
			t := cm.Target{Network: "tcp", Addr: c.Addrs[i], QP: &iwarp.QPConfig{PD: p.pd, Auth: p.auths[i]}, Tag: i}
			if !yield(t) {
				return
			}
		}
	}
	// The whole program has a time limit, so the set-ups need none.
	for t, r := range cm.DialMany(ctx, targets, &cm.Options{RNIC: p.rnic, Retry: retry, Timeout: -1}) {
		attempts += r.Attempts
		if r.Err != nil {
			err = errors.Join(err, r.Err)
			continue
		}
		l, e := p.newLink(t.Tag.(int), r.QP)
		if e != nil {
			err = errors.Join(err, e, r.QP.Abort())
			continue
		}
		links = append(links, l)
	}
	if err != nil {
		return nil, attempts, errors.Join(err, p.hangUp(ctx, links))
	}
	return links, attempts, nil
}

// untilThere is a cm.Options.Retry: a process that cannot be reached may come back, but one that
// refuses us will refuse again.
func untilThere(_ cm.Target, err error, attempt int) (time.Duration, bool) {
	return min(10*time.Millisecond<<min(attempt, 5), 200*time.Millisecond), !errors.Is(err, iwarp.ErrAuth)
}

// hangUp ends connections, all at once.
func (p *process) hangUp(ctx context.Context, links []*link) error {
	qps := func(yield func(*iwarp.QP) bool) {
		for _, l := range links {
			if !yield(l.qp) {
				return
			}
		}
	}
	var errs []error
	for _, err := range cm.DisconnectMany(ctx, qps, nil) {
		errs = append(errs, err)
	}
	for _, l := range links {
		errs = append(errs, l.mr.Close())
	}
	return errors.Join(errs...)
}

// connect sets up the connections that stay.
func (p *process) connect(ctx context.Context, c *command) (reply, error) {
	links, attempts, err := p.dial(ctx, c, untilThere)
	for _, l := range links {
		p.links[l.to] = l
	}
	return reply{Setups: len(links), Attempts: attempts}, err
}

// write writes once to each connected process.
func (p *process) write(ctx context.Context, c *command) (reply, error) {
	links := slices.DeleteFunc(slices.Clone(p.links), func(l *link) bool { return l == nil })
	return reply{}, p.writeAll(ctx, links, c.Round, 0)
}

func (p *process) writeAll(ctx context.Context, links []*link, round, number uint32) error {
	errs := make([]error, len(links))
	var all sync.WaitGroup
	for i, l := range links {
		all.Go(func() {
			if err := l.write(ctx, p, round, number); err != nil {
				errs[i] = fmt.Errorf("write to process %d: %w", l.to, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// write writes the data, announces them, and waits until the peer has verified them.
func (l *link) write(ctx context.Context, p *process, round, number uint32) error {
	data, note, answer := l.mr.Slice(0, p.size), l.mr.Slice(p.size, noteLen), l.mr.Slice(p.size+noteLen, 1)
	words := l.mem[p.size : p.size+noteLen]
	binary.BigEndian.PutUint32(words, round)
	binary.BigEndian.PutUint32(words[4:], number)
	pattern(l.mem[:p.size], p.self, l.to, words)
	if err := l.qp.RDMAWrite(ctx, l.where, data); err != nil {
		return err
	}
	if err := l.qp.Send(ctx, note); err != nil {
		return err
	}
	if _, err := l.qp.Recv(ctx, answer); err != nil {
		return err
	}
	if l.mem[p.size+noteLen] != right {
		return errors.New("the data are not what was written")
	}
	return nil
}

// gone waits until the connection to a process has ended.
func (p *process) gone(ctx context.Context, c *command) (reply, error) {
	l := p.links[c.Peer]
	select {
	case <-l.qp.Done():
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
	p.links[c.Peer] = nil
	return reply{}, l.mr.Close()
}

// tryOldKey connects with the retired key. All others must refuse it, and say why.
func (p *process) tryOldKey(ctx context.Context, c *command) (reply, error) {
	for _, server := range p.others(c) {
		ring, err := cm.NewRing(p.old.client(server))
		if err != nil {
			return reply{}, err
		}
		auth, err := p.newClient(server, ring)
		if err != nil {
			return reply{}, err
		}
		qp, err := p.rnic.Dial(ctx, "tcp", c.Addrs[server], &iwarp.QPConfig{PD: p.pd, Auth: auth})
		if err == nil {
			return reply{}, errors.Join(fmt.Errorf("process %d accepts the old key", server), qp.Abort())
		}
		var refusal *cm.Refusal
		if !errors.As(err, &refusal) || refusal.Code != cm.CodeKeyRetired || !refusal.Signed {
			return reply{}, fmt.Errorf("process %d does not refuse the old key as retired: %w", server, err)
		}
	}
	return reply{}, nil
}
