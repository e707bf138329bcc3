//go:build linux && !purego

package iwarp

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// A scriptedLLP is an LLP whose test decides what arrives, and when a reader that is to leave
// returns from Receive.
type scriptedLLP struct {
	mu      sync.Mutex
	changed sync.Cond
	ready   func() // not nil: armed
	arrived [][]byte
	seq     uint64
	woken   bool
	closed  bool
	calls   int           // of Receive
	leaving chan struct{} // not nil: gets a value when a parked Receive has been woken
	resume  chan struct{} // and then it waits here
}

// scripted makes an established QP over a scriptedLLP.
func scripted(t *testing.T, qc QPConfig) (*side, *scriptedLLP) {
	s := newSide(t, nil)
	f := &scriptedLLP{}
	f.changed.L = &f.mu
	qc.PD = s.pd
	qp, err := s.rnic.newQP(&qc)
	require.NoError(t, err)
	require.NoError(t, qp.establish(testContext(t), f, &mpa.Terms{IRD: 1, ORD: 1}, rdmap.RTRNone))
	s.qp = qp
	return s, f
}

var (
	aWrite = []byte{0xc1, 0x40, 13: 0}
	aSend  = []byte{0x41, 0x43, 13: 1, 17: 0} // the first: MSN 1
)

// arrives has a segment come.
func (f *scriptedLLP) arrives(segment []byte) {
	f.mu.Lock()
	f.arrived = append(f.arrived, segment)
	ready := f.ready
	f.ready = nil
	f.changed.Broadcast()
	f.mu.Unlock()
	if ready != nil {
		ready()
	}
}

// pauses makes the next parked Receive that is woken send to leaving; it then waits for
// resume.
func (f *scriptedLLP) pauses() (leaving, resume chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving, f.resume = make(chan struct{}, 1), make(chan struct{})
	return f.leaving, f.resume
}

func (f *scriptedLLP) received() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *scriptedLLP) Receive(p transport.Placer, how transport.Wait) error {
	f.mu.Lock()
	f.calls++
	parked := false
	for how != transport.NoWait && len(f.arrived) == 0 && !f.woken && !f.closed {
		parked = true
		f.changed.Wait()
	}
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return net.ErrClosed
	case len(f.arrived) > 0:
		f.mu.Unlock()
		defer f.mu.Lock()
		return f.deliver(p)
	case how == transport.NoWait:
		return transport.ErrAgain
	}
	f.woken = false
	if leaving := f.leaving; leaving != nil && parked {
		f.leaving = nil
		f.mu.Unlock()
		defer f.mu.Lock()
		leaving <- struct{}{}
		<-f.resume
	}
	return transport.ErrWoken
}

func (f *scriptedLLP) deliver(p transport.Placer) error {
	for {
		f.mu.Lock()
		if len(f.arrived) == 0 {
			f.mu.Unlock()
			return nil
		}
		segment := f.arrived[0]
		f.mu.Unlock()
		if err := p.Segment(f.seq, segment); err != nil {
			return err
		}
		f.mu.Lock()
		f.seq++
		f.arrived = f.arrived[1:]
		f.mu.Unlock()
	}
}

func (f *scriptedLLP) Arm(ready func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	if len(f.arrived) > 0 {
		go ready()
		return true
	}
	f.ready = ready
	return true
}

func (f *scriptedLLP) Disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = nil
}

func (f *scriptedLLP) Wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.woken = true
	f.changed.Broadcast()
}

func (f *scriptedLLP) Close() error {
	f.mu.Lock()
	f.closed = true
	ready := f.ready
	f.ready = nil
	f.changed.Broadcast()
	f.mu.Unlock()
	if ready != nil {
		go ready()
	}
	return nil
}

func (f *scriptedLLP) Abort(error)                        { _ = f.Close() }
func (f *scriptedLLP) Discard() error                     { return io.EOF }
func (f *scriptedLLP) MaxULPDU() int                      { return 1400 }
func (f *scriptedLLP) Append([]byte, [][]byte, bool) bool { return true }
func (f *scriptedLLP) Flush(bool) error                   { return nil }
func (f *scriptedLLP) Stage()                             {}
func (f *scriptedLLP) CloseSend() error                   { return nil }
func (f *scriptedLLP) Caps() transport.Caps               { return transport.Caps{} }
func (f *scriptedLLP) Path() string                       { return "script" }
func (f *scriptedLLP) LocalAddr() net.Addr                { return &net.TCPAddr{} }
func (f *scriptedLLP) RemoteAddr() net.Addr               { return &net.TCPAddr{} }

// stays has the reader stay for a while: a segment comes.
func (s *side) stays(f *scriptedLLP) {
	s.Helper()
	stays := func() bool {
		s.qp.rx.mu.Lock()
		s.qp.rx.since = time.Now() // another has come just before
		s.qp.rx.mu.Unlock()
		f.arrives(aWrite)
		return s.reader() == readerStaying
	}
	require.Eventually(s, stays, patience, time.Millisecond, "a reader stays")
}

// queues waits until a goroutine has queued for a mutex within the function. Those that wait
// for one mutex get it in turn.
func (s *side) queues(function string) {
	s.Helper()
	buf := make([]byte, 4<<20)
	require.Eventually(s, func() bool {
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "[sync.Mutex.Lock") && strings.Contains(g, function+"(") {
				return true
			}
		}
		return false
	}, patience, time.Millisecond, "%s waits for a lock", function)
}

// waits has a goroutine wait for a message.
func (s *side) waits(ctx context.Context) chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := s.qp.RecvCQ().Wait(ctx, make([]WC, 1))
		ended <- err
	}()
	return ended
}

// TestWaiterComesWhileTheReaderLeaves: the reader has seen that it is to leave, and has not
// given the right to receive away yet. What it was told is not for the next holder.
func TestWaiterComesWhileTheReaderLeaves(t *testing.T) {
	s, f := scripted(t, QPConfig{})
	x := &s.qp.rx
	require.NoError(t, s.qp.PostRecv(RecvWR{}))
	leaving, resume := f.pauses()
	leaves := func() bool { // the attendant has told a reader that stayed
		s.stays(f)
		select {
		case <-leaving:
			return true
		case <-time.After(10 * stayTime): // it was told before it parked
			return false
		}
	}
	require.Eventually(t, leaves, patience, time.Microsecond, "a reader stays for a while")

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	x.mu.Lock()
	ended := s.waits(ctx)
	s.queues("(*receiver).hold")
	close(resume)
	s.queues("(*receiver).rearm")
	x.mu.Unlock()
	f.arrives(aSend)
	require.NoError(t, <-ended, "the message has come")
}

// TestWaiterThatLosesTheRightIsForgotten: its message stalls, since no receive is posted. What
// it waited for is not the next reader's concern.
func TestWaiterThatLosesTheRightIsForgotten(t *testing.T) {
	s, f := scripted(t, QPConfig{RNRWait: time.Minute})
	ctx, cancel := context.WithCancel(testContext(t))
	ended := s.waits(ctx)
	s.becomes(readerHeld, "it receives")
	f.arrives(aSend)
	s.becomes(readerStalled, "there is no receive")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)

	require.NoError(t, s.qp.PostRecv(RecvWR{}))
	one(t, s.qp.RecvCQ(), make([]WC, 1))
	s.becomes(readerArmed, "nothing more comes")
	s.stays(f)
	before := f.received()
	s.becomes(readerArmed, "nothing more comes")
	require.LessOrEqual(t, f.received()-before, 10, "a reader that stays parks")
}
