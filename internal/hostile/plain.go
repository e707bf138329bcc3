package main

import (
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// What attackers get of the receives, and how long.
const (
	receives   = 256 // that all attackers share
	receiveLen = 64
	perPeer    = 8
	lifeTime   = 4 * time.Second // of a connection of an attacker
)

// A plain serves connections of plain verbs: it takes their messages, and does nothing with them.
type plain struct {
	v        *victim
	srq      *iwarp.SRQ
	cq       *iwarp.CQ
	mr       *iwarp.MR
	accepted atomic.Uint64
}

func newPlain(v *victim) (*plain, error) {
	p := &plain{v: v}
	var err error
	if p.srq, err = v.pd.CreateSRQ(receives); err != nil {
		return nil, err
	}
	if p.cq, err = v.rnic.CreateCQ(1 << 16); err != nil {
		return nil, err
	}
	if p.mr, err = v.pd.RegisterMR(make([]byte, receives*receiveLen), stag.LocalWrite, nil); err != nil {
		return nil, err
	}
	for i := range receives {
		if err := p.post(uint64(i)); err != nil {
			return nil, err
		}
	}
	v.running.Go(p.takes)
	return p, nil
}

func (p *plain) post(id uint64) error {
	return p.srq.PostRecv(iwarp.RecvWR{ID: id, Local: []iwarp.SGE{p.mr.Slice(int(id)*receiveLen, receiveLen)}})
}

// takes posts each receive again.
func (p *plain) takes() {
	var wcs [64]iwarp.WC
	for {
		n, err := p.cq.Wait(p.v.ctx, wcs[:])
		if err != nil {
			return
		}
		for _, wc := range wcs[:n] {
			_ = p.post(wc.ID)
		}
	}
}

// handle accepts anyone, for a time. A friend says a word that no attacker knows.
func (p *plain) handle(cr *iwarp.ConnRequest) {
	if p.v.friends.knows(cr) {
		p.v.friends.accept(cr)
		return
	}
	qp, err := cr.Accept(p.v.ctx, &iwarp.QPConfig{
		PD: p.v.pd, SendCQ: p.cq, RecvCQ: p.cq, SRQ: p.srq, SendDepth: perPeer, RecvDepth: perPeer,
		RNRWait: time.Second, Commit: &iwarp.CommitOptions{MaxOctets: 1 << 20},
	})
	if err != nil {
		return
	}
	p.accepted.Add(1)
	select {
	case <-qp.Done():
	case <-time.After(lifeTime):
		_ = qp.Abort()
	case <-p.v.ctx.Done():
		_ = qp.Abort()
	}
}
