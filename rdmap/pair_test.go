package rdmap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Two Streams that talk to each other, each with all its goroutines: posters, one
// sender, one receiver, and an extension that answers from elsewhere.

// A side is a minimal queue pair.
type side struct {
	*testing.T
	s    *Stream
	llp  *scriptLLP
	out  chan []byte // segments to the other side
	kick chan struct{}
	r    *stag.Region
	rq   []stag.Span

	mu       sync.Mutex
	done     []uint64
	received int
	failed   error
}

func newSide(t *testing.T, table *stag.Table, scope stag.Scope, e *Extension) *side {
	d := &side{T: t, llp: &scriptLLP{mulpdu: 300, capacity: 5}, out: make(chan []byte, 16), kick: make(chan struct{}, 1)}
	var err error
	d.r, err = table.RegisterBuffer(&lockedBuffer{mem: make([]byte, 4096)}, stag.Options{
		Access: stag.LocalWrite | stag.Remote, Scope: scope,
	})
	require.NoError(t, err)
	d.rq = []stag.Span{{Mem: make([]byte, 2048), Len: 2048}}
	d.s = New(Config{Table: table, Scope: scope, IRD: 3, ORD: 3, SendDepth: 32, Receives: d, Events: d, Extensions: []*Extension{e}})
	return d
}

func (d *side) Posted() int                          { return 1 }
func (d *side) Buffer(int) []stag.Span               { return d.rq }
func (d *side) Missing() error                       { return nil }
func (d *side) Deliver(Received)                     { d.received++ }
func (d *side) DeliverSends(_ Opcode, lens []uint32) { d.received += len(lens) }
func (d *side) Terminated(t Terminate)               { d.fail(fmt.Errorf("terminated: %v", t.Code)) }

func (d *side) Completed() {}

func (d *side) Complete(r *Request, st Status, _ transport.Code) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, r.ID)
	if st != StatusSuccess {
		d.failed = fmt.Errorf("request %d: %v", r.ID, st)
	}
	if r.Kind == KindExtension && string(r.Reply) != string(r.Inline) {
		d.failed = fmt.Errorf("request %d: asked %q, got %q", r.ID, r.Inline, r.Reply)
	}
}

func (d *side) Kick() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

func (d *side) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = err
	}
}

// send is the sending goroutine.
func (d *side) send(stop <-chan struct{}) {
	defer close(d.out)
	for {
		more, err := d.s.Fill(d.llp)
		if err != nil {
			d.fail(err)
			return
		}
		for _, g := range d.llp.sent {
			d.out <- g
		}
		d.llp.sent = nil
		_ = d.s.Flush(d.llp)
		d.s.Flushed()
		if more || d.s.Pending() {
			continue
		}
		select {
		case <-d.kick:
		case <-stop:
			return
		}
	}
}

// receive is the receiving goroutine.
func (d *side) receive(in <-chan []byte) {
	seq := uint64(0)
	for g := range in {
		if err := d.s.Segment(seq, g); err != nil {
			d.fail(err)
		}
		d.s.BatchDone()
		seq++
		d.Kick()
	}
}

// post posts n random requests to the other side.
func (d *side) post(n int, peer *side, e *Extension, random *rand.Rand, next *uint64, order *sync.Mutex) {
	for range n {
		for {
			order.Lock()
			_, err := d.s.Post(1, func(_ int, r *Request) error {
				r.ID = *next
				off, size := random.IntN(3000), random.IntN(1000)
				r.Remote = RemoteAddr{peer.r.STag(), uint64(off)}
				r.Kind = []Kind{KindSend, KindImmediate, KindWrite, KindInvalidate, KindRead, KindAtomic, KindExtension}[random.IntN(7)]
				switch r.Kind {
				case KindImmediate:
					return nil
				case KindInvalidate:
					r.Kind, r.Flags = KindSend, ReadFence|Solicited
				case KindAtomic:
					r.Remote.TO &^= 7
					r.Inline = AtomicRequest{Op: CompareSwap, At: r.Remote, Data: r.ID}.Append(r.Inline)
					return nil
				case KindExtension:
					r.Ext, r.Inline = e, append(r.Inline, octets(random.IntN(e.MaxRequest))...)
					return nil
				default:
				}
				r.Spans = append(r.Spans, span(d.r, random.IntN(3000), size))
				if r.Kind == KindWrite {
					r.Spans[0] = stag.Span{Mem: make([]byte, size), Len: size}
					r.Flags |= WithImmediate * Flags(random.IntN(2))
				}
				return nil
			})
			if err == nil {
				*next++
			}
			order.Unlock()
			d.Kick()
			if err == nil {
				break
			}
			if !errors.Is(err, ErrQueueFull) {
				d.fail(err)
				return
			}
			time.Sleep(20 * time.Microsecond) // the sender has work to do
		}
	}
}

// A lockedBuffer is what both sides share. RDMA gives no order for octets that several
// operations touch at a time, so plain memory would be a race by design.
type lockedBuffer struct {
	mu  sync.Mutex
	mem []byte
}

func (b *lockedBuffer) Size() int64 { return int64(len(b.mem)) }

func (b *lockedBuffer) ReadAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return copy(p, b.mem[off:]), nil
}

func (b *lockedBuffer) WriteAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return copy(b.mem[off:], p), nil
}

func TestTwoStreamsAndAllTheirGoroutines(t *testing.T) {
	const posters, requests = 2, 200
	answers := make(chan *Inbound, 64)
	e := &Extension{Request: opEcho, Response: opEchoed, MaxRequest: 500, MaxResponse: 500, Serve: func(in *Inbound) { answers <- in }}
	table := stag.NewTable()
	sides := [2]*side{newSide(t, table, alice, e), newSide(t, table, bob, e)}
	var machine, posting, answering sync.WaitGroup
	stop := make(chan struct{})
	answering.Go(func() {
		for in := range answers {
			in.Reply(in.Payload())
		}
	})
	for i, d := range sides {
		peer := sides[1-i]
		machine.Go(func() { d.send(stop) })
		machine.Go(func() { d.receive(peer.out) })
		next, order := new(uint64), new(sync.Mutex)
		for p := range posters {
			posting.Go(func() { d.post(requests, peer, e, rand.New(rand.NewPCG(uint64(i), uint64(p))), next, order) })
		}
	}
	posting.Wait()
	require.Eventually(t, func() bool {
		for _, d := range sides {
			d.mu.Lock()
			failed := d.failed
			d.mu.Unlock()
			if failed != nil {
				return true
			}
			if sq, irq := d.s.Unfinished(); sq+irq > 0 {
				return false
			}
		}
		return true
	}, 20*time.Second, time.Millisecond, "everything completes")
	close(stop)
	machine.Wait()
	close(answers)
	answering.Wait()

	for _, d := range sides {
		d.s.End()
		require.NoError(t, d.failed)
		require.Len(t, d.done, posters*requests)
		for i, id := range d.done {
			require.Equal(t, uint64(i), id, "completions come in the order of posting")
		}
	}
	out := sides[1].s.Stats().Out
	require.Equal(t, int(out[OpSend].Messages+out[OpSendSolicited].Messages+out[OpImmediate].Messages), sides[0].received)
}

// A stream is terminated while everything is in progress, and ends when the last segment has been processed.
func TestTerminateWhileSegmentsCome(t *testing.T) {
	for range 50 {
		e := newEcho()
		e.Serve = func(in *Inbound) { in.Reply(nil) }
		c := converse(t, func(cfg *Config) { cfg.Extensions = []*Extension{&e.Extension} })
		sink, err := c.table.RegisterBuffer(&lockedBuffer{mem: make([]byte, 64)}, stag.Options{Access: stag.LocalWrite | stag.Remote, Scope: alice})
		require.NoError(t, err)
		c.post(readOf(1, target, span(sink, 0, 8)), e.request(2, "x"), readOf(3, target).with(Invalidating), sendOf(4, ""))
		require.NoError(t, c.flush())
		var receiving sync.WaitGroup
		receiving.Go(func() {
			for _, g := range [][]byte{
				readRequestOf(1, ReadRequest{}),
				tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0}, octets(8)),
				untagged(opEcho, QNRequest, 2, "y"),
				untagged(opEchoed, QNResponse, 1, "x"),
				readRequestOf(3, ReadRequest{}),
			} {
				_ = c.send(g)
			}
		})
		c.s.Terminate(&transport.Fault{Code: transport.MPACRC})
		receiving.Wait()
		c.s.End()
		require.Len(t, c.done, 4, "each request completes once")
	}
}
