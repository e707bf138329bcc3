package iwarp_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// cannot skips the test, or fails it where everything must be available, as in the project's own run of all checks.
func cannot(t *testing.T, missing string) {
	t.Helper()
	if os.Getenv("IWARP_REQUIRE_TOOLS") == "1" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

// A network is two network namespaces joined by a cable that can be cut. It ends with its goroutines.
type network struct {
	t         *testing.T
	near, far chan func() // run in the namespaces
	farID     int         // a thread
}

// newNetwork makes the namespaces of threads of this process: a socket belongs to the namespace of the thread that opens
// it.
func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		cannot(t, "a network that can be cut needs root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		cannot(t, "a network that can be cut needs the program ip")
	}
	n := &network{t: t}
	n.near, _ = namespace(t)
	n.far, n.farID = namespace(t)
	n.run(n.near, "ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
	n.run(n.near, "ip", "link", "set", "far", "netns", fmt.Sprint(n.farID))
	n.run(n.near, "ip", "address", "add", "192.0.2.1/24", "dev", "near")
	n.run(n.far, "ip", "address", "add", "192.0.2.2/24", "dev", "far")
	n.run(n.near, "ip", "link", "set", "near", "up")
	n.run(n.far, "ip", "link", "set", "far", "up")
	n.warm()
	return n
}

// warm waits until the cable carries packets. A connection made before that would take the delay for its round-trip
// time, and retransmit and give up seconds later.
func (n *network) warm() {
	n.t.Helper()
	var out, in net.PacketConn
	var err, inErr error
	n.in(n.far, func() { in, inErr = net.ListenPacket("udp", "192.0.2.2:9") })
	n.in(n.near, func() { out, err = net.ListenPacket("udp", "192.0.2.1:0") })
	require.NoError(n.t, errors.Join(err, inErr))
	defer in.Close()
	defer out.Close()
	for deadline := time.Now().Add(wiretest.Patience); ; {
		_, _ = out.WriteTo([]byte("?"), in.LocalAddr()) // lost while the cable is not up
		_ = in.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, _, err = in.ReadFrom(make([]byte, 1)); err == nil {
			return
		}
		require.True(n.t, time.Now().Before(deadline), "the cable works: %v", err)
	}
}

// namespace starts a thread in a network namespace of its own, which runs the functions sent to work.
func namespace(t *testing.T) (work chan func(), id int) {
	t.Helper()
	work = make(chan func())
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		id = unix.Gettid()
		err := unix.Unshare(unix.CLONE_NEWNET)
		started <- err
		for f := range work {
			f()
		}
	}()
	t.Cleanup(func() { close(work) })
	if err := <-started; err != nil {
		cannot(t, "no network namespace: "+err.Error())
	}
	return work, id
}

// in runs f in a namespace and waits for it.
func (n *network) in(where chan func(), f func()) {
	done := make(chan struct{})
	where <- func() { defer close(done); f() }
	<-done
}

func (n *network) run(where chan func(), name string, args ...string) {
	n.t.Helper()
	var out bytes.Buffer
	var err error
	n.in(where, func() {
		c := exec.Command(name, args...)
		c.Stdout, c.Stderr = &out, &out
		err = c.Run()
	})
	if err != nil {
		cannot(n.t, fmt.Sprintf("%s %v: %v: %s", name, args, err, out.String()))
	}
}

// cut makes every peer vanish.
func (n *network) cut() { n.run(n.far, "ip", "link", "set", "far", "down") }

// dial connects the namespaces.
func (n *network) dial() (near, far net.Conn) {
	n.t.Helper()
	var l net.Listener
	var err error
	n.in(n.far, func() { l, err = net.Listen("tcp", "192.0.2.2:0") })
	require.NoError(n.t, err)
	defer l.Close()
	n.in(n.near, func() { near, err = net.DialTimeout("tcp", l.Addr().String(), wiretest.Patience) })
	require.NoError(n.t, err)
	far, err = l.Accept()
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = far.Close() })
	return near, far
}

// TestRDMAP_81_PeerThatVanishes: whether the QP is idle, waits for an answer, or has octets in flight, it ends within
// PeerTimeout, and the application is told.
func TestRDMAP_81_PeerThatVanishes(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	const peerTimeout = 2 * time.Second
	s := newSide(t, &iwarp.Config{PeerTimeout: peerTimeout})
	far := newSide(t, nil)
	buf, mr := s.register(1<<20, stag.LocalWrite, nil)
	_, farMR := far.register(len(buf), stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)

	work := map[string]iwarp.SendWR{
		"idle":                  {},
		"octets on their way":   {Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{mr.Slice(0, len(buf))}, Remote: farMR.Advertise(0, len(buf))},
		"waits for an answer":   {Op: iwarp.OpRDMARead, Local: []iwarp.SGE{mr.Slice(0, len(buf))}, Remote: farMR.Advertise(0, len(buf))},
		"a short message alone": {Op: iwarp.OpSend, Inline: []byte("hello?")},
	}
	qps := map[string]*iwarp.QP{}
	for what := range work {
		qps[what] = n.established(s, far)
	}
	const full = "octets that wait for a window"
	qps[full] = n.established(s, far)
	for range 32 { // the peer does not read them
		require.NoError(t, qps[full].PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, len(buf))}}))
	}
	n.closedWindow(qps[full])
	n.cut()
	start := time.Now()
	for what, wr := range work {
		if wr.Op != 0 {
			require.NoError(t, qps[what].PostSend(wr))
		}
	}
	const slack = 10 * time.Second // it takes the kernel minutes
	ctx := testContext(t)
	for what, qp := range qps {
		select {
		case <-qp.Done():
		case <-time.After(time.Until(start.Add(peerTimeout + slack))):
			t.Fatalf("%s: not reported after %v", what, time.Since(start))
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
		require.ErrorIs(t, qp.Err(), net.ErrClosed, what)
		require.Equal(t, iwarp.StateError, qp.State(), what)
		require.Equal(t, iwarp.EventConnectionLost, (<-s.rnic.Events()).Kind, what)
	}
}

// closedWindow waits until qp can send no more for now, because its peer's receive buffer is full.
func (n *network) closedWindow(qp *iwarp.QP) {
	n.t.Helper()
	for left, same := 0, 0; same < 20; time.Sleep(10 * time.Millisecond) {
		sq, _ := qp.Unfinished()
		if same++; sq != left || sq == 0 {
			left, same = sq, 0
		}
	}
}

// established makes a QP whose peer is in the other namespace.
func (n *network) established(near, far *side) *iwarp.QP {
	n.t.Helper()
	ctx := testContext(n.t)
	a, b := n.dial()
	accepted := make(chan error, 1)
	go func() {
		cr, err := far.rnic.Server(ctx, b, nil)
		if err == nil {
			_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: far.pd})
		}
		accepted <- err
	}()
	qp, err := near.rnic.Client(ctx, a, &iwarp.QPConfig{PD: near.pd})
	require.NoError(n.t, err)
	require.NoError(n.t, <-accepted)
	return qp
}
