package kv

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A requests is the primary's end of the connection of a client that requests changes.
type requests struct {
	r       *Replica
	t       *table
	qp      *iwarp.QP
	in, out *iwarp.MR
	inMem   []byte
	outMem  []byte
	free    chan int // free places for answers; one for each request that may be outstanding
	tasks   sync.WaitGroup
}

// serveChanges handles requests until the connection ends.
func (r *Replica) serveChanges(ctx context.Context, cr *iwarp.ConnRequest, t *table) (err error) {
	s := &requests{
		r: r, t: t, inMem: make([]byte, maxRequest), outMem: make([]byte, clientWindow*answerLen), free: make(chan int, clientWindow),
	}
	for i := range clientWindow {
		s.free <- i
	}
	if s.in, err = r.pd.RegisterMR(s.inMem, stag.LocalWrite, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.in.Close()) }()
	if s.out, err = r.pd.RegisterMR(s.outMem, stag.LocalWrite, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.out.Close()) }()
	if s.qp, err = cr.Accept(ctx, &iwarp.QPConfig{PD: r.pd}); err != nil {
		return err
	}
	defer s.tasks.Wait() // for started answers
	defer func() { _ = s.qp.Abort() }()
	for {
		if err := s.next(ctx); err != nil {
			return err
		}
	}
}

// next receives one request, and begins the change. The answer does not wait for the next request. A client
// may have a limited number of requests outstanding, and there are as many places for answers.
func (s *requests) next(ctx context.Context) error {
	n, err := s.qp.Recv(ctx, s.in.Slice(0, maxRequest))
	if err != nil {
		return err
	}
	var q request
	if err := q.parse(s.inMem[:n]); err != nil {
		return err
	}
	var place int
	select {
	case place = <-s.free:
	case <-s.qp.Done():
		return s.qp.Err()
	}
	c := change{deletes: q.deletes, tenant: s.t.id, key: bytes.Clone(q.key), value: bytes.Clone(q.value)}
	ended := make(chan error, 1)
	if err := s.r.writer.submit(s.t, c, func(err error) { ended <- err }); err != nil {
		ended <- err
	}
	s.tasks.Go(func() {
		var err error
		select {
		case err = <-ended:
		case <-s.qp.Done(): // the answer is no longer needed
			return
		}
		b := s.outMem[place*answerLen:][:answerLen]
		putAnswer(b, q.number, statusOf(err))
		err = s.qp.Send(ctx, s.out.Slice(place*answerLen, answerLen))
		s.free <- place
		if err != nil {
			_ = s.qp.Abort()
		}
	})
	return nil
}
