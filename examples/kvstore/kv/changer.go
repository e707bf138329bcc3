package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A changer requests changes from the primary. It connects on demand, if it has no connection.
type changer struct {
	c    *Client
	turn chan struct{} // holds a token unless a goroutine connects

	mu     sync.Mutex
	conn   *asking
	closed bool
}

// An asking is a connection for requests.
type asking struct {
	qp      *iwarp.QP
	out, in *iwarp.MR
	outMem  []byte
	inMem   []byte
	free    chan int // free places for requests
	ended   chan struct{}

	mu      sync.Mutex
	last    uint32
	waiting map[uint32]waiter
}

// A waiter is a request that has no answer yet.
type waiter struct {
	place int
	ended chan status
}

func (g *changer) init(c *Client) {
	g.c, g.turn = c, make(chan struct{}, 1)
	g.turn <- struct{}{}
}

// do requests a change, and waits for the answer.
func (g *changer) do(ctx context.Context, q *request) error {
	a, err := g.use(ctx)
	if err != nil {
		return fmt.Errorf("%w: primary %s: %w", ErrUnavailable, g.c.cfg.Primary, err)
	}
	var place int
	select {
	case place = <-a.free:
	case <-a.ended:
		return fmt.Errorf("%w: the connection to the primary has ended", ErrUnavailable)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	w := waiter{place: place, ended: make(chan status, 1)}
	q.number = a.add(w)
	n := q.put(a.outMem[place*maxRequest:])
	// PostSend does not wait: if ctx ends, the requests of others can still use the connection.
	err = a.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{a.out.Slice(place*maxRequest, n)}})
	if err != nil {
		_ = a.qp.Abort()
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return w.await(ctx, a.ended)
}

// await waits for the answer. An answer that has arrived counts even if the connection or ctx has ended since: a primary that
// closes answers first.
func (w waiter) await(ctx context.Context, ended <-chan struct{}) error {
	var err error
	select {
	case s := <-w.ended:
		return s.err()
	case <-ended:
		err = errors.New("the connection to the primary has ended")
	case <-ctx.Done():
		err = ctx.Err()
	}
	select {
	case s := <-w.ended:
		return s.err()
	default:
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
}

// use returns a connection.
func (g *changer) use(ctx context.Context) (*asking, error) {
	select {
	case <-g.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { g.turn <- struct{}{} }()
	g.mu.Lock()
	a := g.conn
	g.mu.Unlock()
	if a != nil {
		select {
		case <-a.ended:
		default:
			return a, nil
		}
	}
	a, err := g.dial(ctx)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		_ = a.qp.Abort()
		return nil, errors.New("kv: the client is closed")
	}
	g.conn = a
	return a, nil
}

func (g *changer) dial(ctx context.Context) (a *asking, err error) {
	c := g.c
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	a = &asking{
		outMem: make([]byte, clientWindow*maxRequest), inMem: make([]byte, answerLen),
		free: make(chan int, clientWindow), ended: make(chan struct{}), waiting: make(map[uint32]waiter),
	}
	for i := range clientWindow {
		a.free <- i
	}
	if a.out, err = c.pd.RegisterMR(a.outMem, 0, nil); err != nil {
		return nil, err
	}
	if a.in, err = c.pd.RegisterMR(a.inMem, stag.LocalWrite, nil); err != nil {
		return nil, errors.Join(err, a.out.Close())
	}
	a.qp, err = dial(ctx, c.rnic, c.cfg.Network, c.cfg.Primary, &iwarp.QPConfig{
		PD: c.pd, Auth: c.auth, PrivateData: []byte{byte(useChanges)},
	})
	if err != nil {
		return nil, errors.Join(err, a.out.Close(), a.in.Close())
	}
	c.tasks.Go(func() { a.receive(c.ctx) })
	return a, nil
}

// add records a request, and gives it a number.
func (a *asking) add(w waiter) uint32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	a.waiting[a.last] = w
	return a.last
}

// receive handles answers until the connection ends.
func (a *asking) receive(ctx context.Context) {
	defer func() {
		_ = a.qp.Abort()
		close(a.ended)
		<-a.qp.Done()
		_ = a.out.Close()
		_ = a.in.Close()
	}()
	for {
		n, err := a.qp.Recv(ctx, a.in.Slice(0, answerLen))
		if err != nil {
			return
		}
		number, s, err := parseAnswer(a.inMem[:n])
		if err != nil {
			return
		}
		a.mu.Lock()
		w, ok := a.waiting[number]
		delete(a.waiting, number)
		a.mu.Unlock()
		if !ok {
			return
		}
		w.ended <- s
		a.free <- w.place
	}
}

// close refuses further changes. The goroutine that receives ends with the Client.
func (g *changer) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
