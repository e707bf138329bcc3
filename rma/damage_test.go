package rma

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/damage"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/regionkey"
)

// A fated pair has one connection after another, each of which is damaged while all kinds of operations are outstanding.
type fated struct {
	*pair
	line    *damage.Line // of the connection
	wait    func()       // waits until all goroutines are blocked; nil: in real time
	longest time.Duration
	well    map[string]int // operations that have succeeded, by name
	failed  map[string]int
}

// newFated makes a pair. Unless its network is SCTP, it has lines.
func newFated(t *testing.T, p plan, wait func()) *fated {
	t.Helper()
	f := &fated{wait: wait, well: make(map[string]int), failed: make(map[string]int)}
	if p.sockets == nil {
		p.via = func(network, to string) string {
			line, err := damage.NewLine(context.Background(), network, to)
			require.NoError(t, err)
			t.Cleanup(line.Close)
			line.BeforeCut = wait
			f.line = line
			return line.Addr()
		}
	}
	f.pair = newPair(t, p)
	f.first()
	c, s := &f.server.cfg, &f.plan.client
	f.longest = s.OpTimeout + c.PullTimeout + c.Guard
	if s.OpTimeout == 0 {
		f.longest += defaultOpTimeout
	}
	return f
}

// first ends the connection of newPair.
func (f *fated) first() {
	for _, qp := range f.qps {
		require.NoError(f, qp.Abort())
	}
	if f.line != nil {
		f.line.Close()
	} else {
		f.wait()
	}
}

// A deed is an operation that was begun, and the effect that it may have.
type deed struct {
	name string
	cmd  Command
	want []byte // of a Read
}

// deeds are Reads and Writes of regions of the memory that do not overlap. round varies their octets.
func (f *fated) deeds(h *Handle, round byte) []deed {
	f.mem.Update(func(b []byte) {
		clear(b[:1<<15])
		copy(b[8192:], octets(round, 300))
	})
	unset := func(n int) []byte { return bytes.Repeat([]byte{0xa5}, n) }
	plain := f.client.Suite() == 0
	return []deed{
		{"write", Command{Op: Write, Handle: h, Buf: octets(round, 16)}, nil},
		{"read", Command{Op: Read, Handle: h, Off: 8192, Buf: unset(16), Tag: 1}, octets(round, 300)[:16]},
		{"write", Command{Op: Write, Handle: h, Off: 4096, Buf: octets(round+1, 40), Tag: 2}, nil},
		{"direct read", Command{Op: Read, Handle: h, Off: 8292, Buf: unset(40), Direct: plain, Tag: 3}, octets(round, 300)[100:140]},
		{"empty write", Command{Op: Write, Handle: h, Buf: []byte{}, Tag: 4}, nil},
		{"read", Command{Op: Read, Handle: h, Off: 8392, Buf: unset(16), Tag: 5}, octets(round, 300)[200:216]},
	}
}

// A control is an outstanding Open or Rekey.
type control struct {
	name string
	end  chan error
}

func controls(ctx context.Context, h *Handle, opened *Handle) []control {
	begin := func(name string, do func() error) control {
		c := control{name, make(chan error, 1)}
		go func() { c.end <- do() }()
		return c
	}
	return []control{
		begin("open", func() error {
			o, err := h.client.Open(ctx, regionID, MayRead)
			if err == nil {
				opened.keys.Store(o.keys.Load())
			}
			return err
		}),
		begin("rekey", func() error { return h.Rekey(ctx, nil, time.Minute) }),
	}
}

// damages makes a connection, begins everything, and applies the damage how after so many octets, or datagrams, of one side. It
// returns how many octets or datagrams of that side have passed.
func (f *fated) damages(side int, how string, at int) (passed int) {
	f.Helper()
	where := fmt.Sprintf("%s behind %d of side %d", how, at, side)
	o := f.another()
	o.serve()
	var err error
	o.client, err = NewClient(o.context(), o.qps[0], &o.plan.client)
	require.NoError(f, err, where)
	f.client = o.client
	h, portal := o.opens(), o.portal(8)
	epoch := f.region.Epoch()
	f.arm(side, at, how)
	deeds, begun := f.deeds(h, byte(at)|1), time.Now()
	ends := make([]Completion, 0, len(deeds))
	for _, d := range deeds {
		if _, err := portal.Post(d.cmd); err != nil { // datagrams are not held, so the damage may come first
			require.ErrorIs(f, err, net.ErrClosed, where)
			require.Nil(f, f.line, where)
			ends = append(ends, Completion{Tag: d.cmd.Tag, Err: err})
		}
	}
	var opened Handle
	ctx := o.context()
	all := controls(ctx, h, &opened)
	f.release()

	ends = f.ends(ctx, portal, ends, len(deeds), where)
	outcomes := make([]error, len(all))
	for i, c := range all {
		outcomes[i] = <-c.end
		f.count(c.name, outcomes[i])
	}
	if f.wait != nil {
		require.LessOrEqual(f, time.Since(begun), f.longest, "%s: in bounded time", where)
	}
	for i, d := range deeds {
		f.count(d.name, ends[i].Err)
		f.wantEffect(d, ends[i], where)
	}
	f.wantKey(epoch, outcomes[1], where)
	told := f.octets()
	require.Equal(f, outcomes[0] == nil, opened.keys.Load() != nil, where)
	require.Zero(f, portal.Poll(make([]Completion, 8)), "%s: each operation ends once", where)
	passed = f.breakOff(o, side)
	require.Equal(f, told, f.octets(), "%s: nothing has changed when it was told", where)
	f.wantKey(epoch, outcomes[1], where)
	return passed
}

// octets returns the octets of the region that operations use.
func (f *fated) octets() []byte {
	b := make([]byte, 1<<15)
	f.mem.View(func(all []byte) { copy(b, all) })
	return b
}

// arm prepares the damage. On a line, nothing passes until release.
func (f *fated) arm(side, at int, how string) {
	if f.line == nil {
		f.plan.sockets.Arm(side, at, how)
		return
	}
	f.line.Hold()
	f.line.Arm(side, at, how)
}

func (f *fated) release() {
	if f.wait != nil {
		f.wait()
	}
	if f.line != nil {
		f.line.Release()
	}
}

// ends waits until n operations have ended, and returns their ends by tag. Some operations were refused.
func (f *fated) ends(ctx context.Context, p *Portal, refused []Completion, n int, where string) []Completion {
	f.Helper()
	all := refused
	for len(all) < n {
		var one [1]Completion
		_, err := p.Wait(ctx, one[:])
		require.NoError(f, err, where)
		all = append(all, one[0])
	}
	slices.SortFunc(all, func(a, b Completion) int { return cmp.Compare(a.Tag, b.Tag) })
	for i, c := range all {
		require.EqualValues(f, i, c.Tag, "%s: each operation ends once", where)
	}
	return all
}

func (f *fated) count(name string, err error) {
	if err == nil {
		f.well[name]++
	} else {
		f.failed[name]++
	}
}

// wantEffect requires the effect to be in place after success, and to be as the outcome says after a failure.
func (f *fated) wantEffect(d deed, end Completion, where string) {
	f.Helper()
	got := make([]byte, len(d.cmd.Buf))
	f.mem.View(func(b []byte) { copy(got, b[d.cmd.Off:]) })
	unset := bytes.Repeat([]byte{0xa5}, len(got))
	switch {
	case d.cmd.Op == Read && end.Err == nil:
		require.Equal(f, d.want, d.cmd.Buf, "%s: %s", where, d.name)
	case d.cmd.Op == Read:
		require.True(f, d.cmd.Direct || bytes.Equal(unset, d.cmd.Buf), "%s: %s", where, d.name)
	case end.Err == nil:
		require.Equal(f, d.cmd.Buf, got, "%s: %s", where, d.name)
	case fateOf(end.Err).NoEffect():
		require.Equal(f, make([]byte, len(got)), got, "%s: %s, %v", where, d.name, end.Err)
	default:
		require.True(f, bytes.Equal(make([]byte, len(got)), got) || bytes.Equal(d.cmd.Buf, got), "%s: all of %s or nothing", where, d.name)
	}
}

// fateOf returns the outcome of a failed operation.
func fateOf(err error) Outcome {
	var e *OpError
	if errors.As(err, &e) {
		return e.Outcome
	}
	return Closed // it was not begun
}

// wantKey requires the region to have its next key if, and only if, the outcome says so.
func (f *fated) wantKey(before regionkey.Epoch, err error, where string) {
	f.Helper()
	switch now := f.region.Epoch(); {
	case err == nil:
		require.Equal(f, before+1, now, where)
	case fateOf(err).NoEffect():
		require.Equal(f, before, now, where)
	default:
		require.LessOrEqual(f, now, before+1, where)
	}
}

// breakOff ends the connection, and requires that nothing of it is left.
func (f *fated) breakOff(o *pair, side int) (passed int) {
	f.Helper()
	if f.line != nil {
		passed = f.line.Passed(side)
		f.line.Close()
	} else {
		passed = f.plan.sockets.Passed(side)
		f.plan.sockets.Disarm()
		_, _ = o.qps[0].Abort(), o.qps[1].Abort() // they may have ended
		f.wait()                                  // so that their ABORTs do not count as datagrams of the next connection
	}
	require.NoError(f, o.client.Close())
	require.NotErrorIs(f, <-o.served, context.Canceled, "it has ended with the connection")
	o.stop()
	o.wantWindowWhole()
	require.Zero(f, o.client.c.scratch.used())
	require.Zero(f, f.server.scratch.used())
	require.Zero(f, f.server.solicitor.Stats().Granted)
	return passed
}

// wantBoth requires that operations of each kind have succeeded and, if failures is set, that some have failed.
func (f *fated) wantBoth(failures bool) {
	f.Helper()
	for _, name := range []string{"write", "read", "direct read", "empty write", "open", "rekey"} {
		require.Positive(f, f.well[name], "%s has succeeded", name)
		require.Equal(f, failures, f.failed[name] > 0, "%s has failed", name)
	}
}

// wait waits, in virtual time, until all goroutines are blocked.
func wait() { time.Sleep(time.Nanosecond) }

// never is a position after everything that a side sends.
const never = 1 << 20

// damageStrides is the distance, in octets, between one damage and the next.
var damageStrides = map[bool]int{false: 1, true: 11}[raceorder.Enabled]

// TestRMA_19_21_28_DamageAtEveryOctet: in virtual time, over the pipe. Every operation ends once, in bounded time, with success only if its effect
// is in place. The suites take turns: each octet is followed by a reset in one of them.
func TestRMA_19_21_28_DamageAtEveryOctet(t *testing.T) {
	strides := map[string]int{damage.Reset: 3, damage.FIN: 14, damage.Corrupt: 20, damage.HalfClose: 32, damage.Vanish: 32, damage.Stall: 101}
	for first, name := range []string{"suite 0", "suite 1", "suite 2"} {
		p := suites()[name]
		for how, stride := range strides {
			for side := range 2 {
				t.Run(fmt.Sprintf("%s of side %d, %s", how, side, name), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						f := newFated(t, p, wait)
						total := f.damages(side, damage.Reset, never)
						for at := first; at < total; at += stride * damageStrides {
							f.damages(side, how, at)
						}
						f.wantBoth(how != damage.Stall)
					})
				})
			}
		}
	}
}

// TestDamageAtEveryDatagram damages SCTP over UDP, in virtual time. Datagrams that are lost, corrupt or late are sent again.
func TestDamageAtEveryDatagram(t *testing.T) {
	for how, repaired := range map[string]bool{damage.Corrupt: true, damage.Lose: true, damage.Stall: true, damage.Vanish: false, damage.Address: false, damage.Abort: false} {
		for side := range 2 {
			t.Run(fmt.Sprintf("%s of side %d", how, side), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					sockets := damage.NewSockets(wiretest.NewPacketNetwork(0, 1).ListenPacket)
					defer sockets.Close()
					f := newFated(t, plan{network: "sctp+udp", sockets: sockets}, wait)
					total := f.damages(side, damage.Lose, never)
					for at := range total {
						f.damages(side, how, at)
					}
					f.wantBoth(!repaired)
				})
			})
		}
	}
}

// TestRMA_19_DamageOverTCP damages TCP and TLS after some of their octets, in real time.
func TestRMA_19_DamageOverTCP(t *testing.T) {
	client, server := testTLS()
	for name, p := range map[string]plan{"TCP": {network: "tcp"}, "TLS": {network: "tcp", plain: true, clientTLS: client, serverTLS: server}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.client = ClientConfig{OpTimeout: 10 * time.Second, Dispatch: [2]time.Duration{-1, -1}}
			p.server = ServerConfig{PullTimeout: 30 * time.Millisecond, Guard: 20 * time.Millisecond, Dispatch: [2]time.Duration{-1, -1}}
			f := newFated(t, p, nil)
			for side := range 2 {
				total := f.damages(side, damage.Reset, never)
				for i, how := range []string{damage.Reset, damage.FIN, damage.Corrupt} {
					for at := 101 * i; at < total; at += 303 * damageStrides {
						f.damages(side, how, at)
					}
				}
				f.damages(side, damage.HalfClose, total/3)
				f.damages(side, damage.HalfClose, total/2)
			}
			f.plan.client.OpTimeout = 3 * time.Second // the duration of each timeout
			began := f.failed["write"]
			f.damages(0, damage.Vanish, 200)
			require.Greater(t, f.failed["write"], began, "silence ends an operation")
		})
	}
}
