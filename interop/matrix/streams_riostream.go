package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket"
)

// riostreamCases are the cases of memory that is written by offset.
func riostreamCases() (all []Case) {
	for _, r := range []struct {
		name string
		run  rstreamRun
		core bool
	}{
		{"64", rstreamRun{64, 10, 100}, false},
		{"1000", rstreamRun{1000, 100, 5}, true},
		{"64k", rstreamRun{64 << 10, 20, 5}, false},
		{"1m", rstreamRun{1 << 20, 4, 3}, false},
	} {
		all = append(all, inBothRoles(Case{Name: "riostream/" + r.name, Core: r.core}, func(t *T, cfg *rsocket.Config) { t.riostream(cfg, r.run) })...)
	}
	return all
}

// A board is memory that the peer writes by offset. A transfer has arrived when the last octet has the value of its turn.
type board struct {
	mu      sync.Mutex
	changed sync.Cond
	mem     []byte
	ended   bool
}

func newBoard(size int) *board {
	b := &board{mem: make([]byte, size)}
	b.changed.L = &b.mu
	b.mem[size-1] = 0xff
	return b
}

func (b *board) Size() int64 { return int64(len(b.mem)) }

func (b *board) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (b *board) WriteAt(p []byte, off int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed.Signal()
	return copy(b.mem[off:], p), nil
}

// end ends a call that waits.
func (b *board) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.changed.Signal()
}

// A riostreamEnd does what riostream does with -T v.
type riostreamEnd struct {
	rstreamEnd // only for the octets that count up
	conn       *rsocket.Conn
	board      *board
	turn       byte
}

// receives waits for the transfer of the next turn, and compares all octets but the last one.
func (e *riostreamEnd) receives() error {
	b := e.board
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.mem) - 1
	for b.mem[last] != e.turn {
		if b.ended {
			return fmt.Errorf("the last octet is %#x, want %#x", b.mem[last], e.turn)
		}
		b.changed.Wait()
	}
	e.turn++
	for i, got := range b.mem[:last] {
		if got != e.in {
			return fmt.Errorf("octet %d is %#x, want %#x", i, got, e.in)
		}
		e.in++
	}
	return nil
}

// sends makes transfers, the last of which carries octets that count up, and then the next turn in a Write of its own: within one
// Write the memory may be filled in any order (RFC 5040 section 5.5), and riostream, which checks only the octet of the turn, would
// compare octets that have not arrived. This was seen with Linux 6.12: riostream ended, and hung.
func (e *riostreamEnd) sends(count int) error {
	mem := e.mem(len(e.board.mem))
	last := len(mem) - 1
	mem[last] = e.turn - 1 // not a new turn
	for range count - 1 {
		if _, err := e.conn.WriteMapped(mem, 0); err != nil {
			return err
		}
	}
	for k := range mem[:last] {
		mem[k] = e.out
		e.out++
	}
	if _, err := e.conn.WriteMapped(mem[:last], 0); err != nil {
		return err
	}
	mem[last] = e.turn
	e.turn++
	_, err := e.conn.WriteMapped(mem[last:], uint64(last))
	return err
}

// runs performs a run.
func (e *riostreamEnd) runs(client bool, r rstreamRun) error {
	if err := e.conn.MapBuffer(e.board, 0); err != nil {
		return err
	}
	there := func() error { return e.sends(r.count) }
	back := e.receives
	sync := []func([]byte) (int, error){e.conn.Write, func(b []byte) (int, error) { return io.ReadFull(e.conn, b) }}
	if !client {
		there, back = back, there
		sync[0], sync[1] = sync[1], sync[0]
	}
	for _, step := range sync { // the entries of the mapped memory arrive with these messages
		if _, err := step(make([]byte, syncLen)); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
	}
	for i := range r.iterations {
		if err := errors.Join(there(), back()); err != nil {
			return fmt.Errorf("iteration %d: %w", i, err)
		}
	}
	return nil
}

// riostream performs one run with riostream, and expects its end.
func (t *T) riostream(cfg *rsocket.Config, r rstreamRun) {
	cfg.IOMap = 1
	args := r.args()
	var c net.Conn
	var p *process
	if t.Role == Responder {
		l := t.listens(cfg)
		p = t.siw("riostream", append([]string{"-s", OurIP}, args...)...)
		c = t.accepts(l, p).Conn
	} else {
		p = t.siw("riostream", args...)
		c = t.dials(cfg, p).Conn
	}
	e := &riostreamEnd{conn: c.(*rsocket.Conn), board: newBoard(r.size)}
	e.Conn = c
	defer t.bounds(&e.rstreamEnd)()
	defer context.AfterFunc(t.Ctx, e.board.end)()
	require.NoError(t, e.runs(t.Role == Initiator, r), "riostream said %q", p.lastWords())
	require.NoError(t, e.ends(), "the end of the stream")
	p.succeed()
	require.NotContains(t, p.out.String(), "failed")
}
