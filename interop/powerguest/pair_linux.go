package main

import (
	"context"
	"errors"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A pair is a requester and a target in this process, which has registered a file.
type pair struct {
	file
	target, requester *iwarp.RNIC
	pd                [2]*iwarp.PD
	qp                *iwarp.QP // of the requester
	remote            iwarp.RemoteBuffer
	mem               []byte
	mr                *iwarp.MR // of mem
}

const pairMemory = 1 << 20

func newPair(f file) (*pair, error) {
	p := &pair{file: f, mem: make([]byte, pairMemory)}
	for i, r := range []**iwarp.RNIC{&p.target, &p.requester} {
		var err error
		if *r, err = iwarp.Open(nil); err != nil {
			return nil, err
		}
		if p.pd[i], err = (*r).AllocPD(); err != nil {
			return nil, err
		}
	}
	mr, err := p.pd[0].RegisterBuffer(f.buffer, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &iwarp.MROptions{Durable: f.durable})
	if err != nil {
		return nil, err
	}
	p.remote = mr.Advertise(0, int(f.buffer.Size()))
	if p.mr, err = p.pd[1].RegisterMR(p.mem, stag.LocalWrite, nil); err != nil {
		return nil, err
	}
	return p, p.connect()
}

// connect makes a connection, the first one or another.
func (p *pair) connect() error {
	ctx, cancel := p.limit()
	defer cancel()
	l, err := p.target.Listen(ctx, "pipe", "", nil)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // nothing was written
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: p.pd[0], Commit: &iwarp.CommitOptions{StrictDurable: true}})
		}
		accepted <- err
	}()
	p.qp, err = p.requester.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: p.pd[1], Commit: &iwarp.CommitOptions{}})
	return errors.Join(err, <-accepted)
}

func (*pair) limit() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Second)
}

func (p *pair) part(off, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: p.remote.STag, TO: p.remote.TO + uint64(off), Len: uint32(n)}
}

// write writes, and reads one octet elsewhere, which proves that the written octets are placed.
func (p *pair) write(off int, data []byte) error {
	ctx, cancel := p.limit()
	defer cancel()
	copy(p.mem, data)
	if err := p.qp.RDMAWrite(ctx, p.part(off, len(data)), p.mr.Slice(0, len(data))); err != nil {
		return err
	}
	return p.qp.RDMARead(ctx, p.mr.Slice(pairMemory-1, 1), p.part(0, 1))
}

func (p *pair) commit(off, n int) error {
	ctx, cancel := p.limit()
	defer cancel()
	return p.qp.Commit(ctx, p.part(off, n))
}

func (p *pair) read(off, n int) ([]byte, error) {
	ctx, cancel := p.limit()
	defer cancel()
	err := p.qp.RDMARead(ctx, p.mr.Slice(0, n), p.part(off, n))
	return p.mem[:n], err
}

// writeAndCommit writes and commits.
func (p *pair) writeAndCommit(off int, data []byte) error {
	if err := p.write(off, data); err != nil {
		return err
	}
	return p.commit(off, len(data))
}

// close ends both, and the file.
func (p *pair) close() error {
	err := errors.Join(p.requester.Close(), p.target.Close())
	if c, ok := p.buffer.(interface{ Close() error }); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}
