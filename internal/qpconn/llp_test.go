package qpconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// A memoryLLP is an LLP in memory. The test plays its peer and its network. It keeps a list of what its user did that an
// LLP does not allow. Its sending half is in llp_send_test.go.
type memoryLLP struct {
	stops
	conn *lockorder.Mutex[lockorder.Conn] // of its user

	mu      sync.Mutex
	changed sync.Cond
	faults  []string

	// What has come.
	reads  [][][]byte // one read's worth each
	seq    uint64
	held   bool  // the first was held back: it is handed up again even if the LLP was closed
	fin    bool  // the peer's half ends after the reads
	last   bool  // the last read reports fin, too
	lost   error // the error after the reads
	refuse error // the Placer's answer

	woken     bool
	wakes     int
	ready     func() // not nil: armed
	noArm     bool
	looks     time.Duration // how long a look takes if it finds nothing
	receivers int           // goroutines in Receive or Discard
	calls     int           // of Receive
	parks     int           // how many of the calls waited
	how       transport.Wait
	arms      int
	discards  int

	llpSend
	closed  error // not nil: the LLP is closed
	ends    []string
	goexits bool // Close ends its goroutine
}

func newMemoryLLP() *memoryLLP {
	f := &memoryLLP{}
	f.changed.L = &f.mu
	return f
}

// change lets the test modify the LLP, and wakes the goroutines that wait.
func (f *memoryLLP) change(do func()) {
	f.mu.Lock()
	do()
	f.changed.Broadcast()
	ready := f.due()
	f.mu.Unlock()
	if ready != nil {
		go ready()
	}
}

// arrives adds segments that one read will return.
func (f *memoryLLP) arrives(segments ...[]byte) {
	f.change(func() { f.reads = append(f.reads, segments) })
}

// due returns what the poller is to call. mu is held.
func (f *memoryLLP) due() (ready func()) {
	unread := len(f.reads) > 1 || len(f.reads) > 0 && !f.held // the poller does not know of input that was read
	if f.ready != nil && (unread || f.fin || f.lost != nil || f.closed != nil) {
		ready, f.ready = f.ready, nil
	}
	return ready
}

func (f *memoryLLP) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// one counts the goroutines that do what only one at a time may do. mu is held.
func (f *memoryLLP) one(n *int, what string) (leave func()) {
	if *n++; *n > 1 {
		f.fault("%d goroutines in %s", *n, what)
	}
	return func() { *n-- }
}

func (f *memoryLLP) Receive(p transport.Placer, wait transport.Wait) error {
	f.pass("Receive")
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.one(&f.receivers, "Receive")()
	if f.ready != nil {
		f.fault("Receive on an LLP that is armed")
	}
	f.calls++
	for waited := false; ; waited = true {
		switch {
		case f.held:
			return f.deliver(p)
		case f.closed != nil:
			return f.closed
		case f.refuse != nil:
			return f.refuse
		case len(f.reads) > 0:
			return f.deliver(p)
		case f.lost != nil:
			return f.lost
		case f.fin:
			return io.EOF
		case wait == transport.NoWait:
			f.look()
			return transport.ErrAgain
		case f.woken:
			f.woken = false
			return transport.ErrWoken
		}
		if !waited {
			f.parks++
			f.how = wait
		}
		f.changed.Wait()
	}
}

// look takes the time that a look takes.
func (f *memoryLLP) look() {
	f.mu.Unlock()
	time.Sleep(f.looks)
	f.mu.Lock()
}

// deliver hands up one read's worth. mu is held, but released meanwhile.
func (f *memoryLLP) deliver(p transport.Placer) error {
	read := f.reads[0]
	f.reads = f.reads[1:]
	f.isFenced, f.held = false, false
	f.mu.Unlock()
	defer f.mu.Lock()
	for i, segment := range read {
		err := p.Segment(f.seq, segment)
		if errors.Is(err, transport.ErrStall) {
			f.mu.Lock()
			f.reads, f.held = append([][][]byte{read[i:]}, f.reads...), true
			f.mu.Unlock()
			return err
		}
		if err != nil {
			f.mu.Lock()
			f.refuse = err
			f.mu.Unlock()
			return err
		}
		f.seq++
	}
	if f.last {
		return io.EOF
	}
	return nil
}

func (f *memoryLLP) Discard() error {
	f.pass("Discard")
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.one(&f.receivers, "Receive")()
	f.discards++
	for {
		f.reads, f.held = nil, false
		switch {
		case f.closed != nil:
			return f.closed
		case f.lost != nil:
			return f.lost
		case f.fin:
			return io.EOF
		}
		f.changed.Wait()
	}
}

// step requires that the caller holds the mutex of the Conn: the LLP is armed and disarmed in the order of the arbiter's
// steps.
func (f *memoryLLP) step(what string) {
	if f.conn.TryLock() {
		f.conn.Unlock()
		f.change(func() { f.fault("%s without the mutex of the Conn", what) })
	}
}

func (f *memoryLLP) Arm(ready func()) bool {
	f.step("Arm")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arms++
	switch {
	case f.receivers > 0:
		f.fault("Arm while a goroutine receives")
	case f.ready != nil:
		f.fault("Arm on an LLP that is armed")
	case f.held && f.closed == nil:
		f.fault("Arm while a segment is held back, of which the poller does not know")
	}
	if f.noArm || f.closed != nil {
		return false
	}
	f.ready = ready
	if ready := f.due(); ready != nil {
		go ready()
	}
	return true
}

func (f *memoryLLP) Disarm() {
	f.step("Disarm")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = nil
}

func (f *memoryLLP) Wake() {
	f.pass("Wake")
	f.change(func() { f.woken, f.wakes = true, f.wakes+1 })
}

func (f *memoryLLP) Close() error {
	f.end("Close", net.ErrClosed)
	f.pass("Close")
	if see(f, func() bool { return f.goexits }) {
		runtime.Goexit()
	}
	return nil
}

func (f *memoryLLP) Abort(cause error) { f.end("Abort", fmt.Errorf("%w: %w", cause, net.ErrClosed)) }

func (f *memoryLLP) end(how string, err error) {
	f.change(func() {
		f.ends = append(f.ends, how)
		if f.closed == nil {
			f.closed = err
		}
	})
}

// see returns what get reads from the LLP.
func see[T any](f *memoryLLP, get func() T) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return get()
}

func (f *memoryLLP) MaxULPDU() int        { return 1400 }
func (f *memoryLLP) Caps() transport.Caps { return transport.Caps{} }
func (f *memoryLLP) Path() string         { return "memory" }
func (f *memoryLLP) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (f *memoryLLP) RemoteAddr() net.Addr { return &net.TCPAddr{} }

var _ transport.LLP = (*memoryLLP)(nil)

// The segments that arrive.

// aSend is the Send with this MSN.
func aSend(msn byte) []byte { return []byte{0x41, byte(0x40 | rdmap.OpSend), 13: msn, 17: 0} }

var (
	aWrite = []byte{0xc1, byte(0x40 | rdmap.OpWrite), 13: 0}
	// aRead is the first Read Request, of no octets.
	aRead = append([]byte{0x41, byte(0x40 | rdmap.OpReadRequest), 9: byte(rdmap.QNRequest), 13: 1, 17: 0}, make([]byte, 28)...)
	// aResponse answers a Read of no octets.
	aResponse = []byte{0xc1, byte(0x40 | rdmap.OpReadResponse), 13: 0}
	// aTerminate reports a local catastrophic error.
	aTerminate = append([]byte{0x41, byte(0x40 | rdmap.OpTerminate), 9: byte(rdmap.QNTerminate), 13: 1, 17: 0},
		rdmap.Terminate{Code: transport.RDMAPLocalCatastrophic}.Append(nil)...)
	// notASegment is too short.
	notASegment = []byte{0x41}
)
