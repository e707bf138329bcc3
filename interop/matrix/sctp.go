package matrix

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

// The networks of the two back ends of SCTP.
const (
	inKernel = "sctp"
	overUDP  = "sctp+udp"
)

// udpPort is the UDP port of SCTP over UDP (RFC 6951), which a kernel uses for all its SCTP ports.
const udpPort = 9899

// sctpCases run this library at both ends, since there is no other implementation of RFC 5043.
// At least one end uses the SCTP of the kernel.
func sctpCases() []Case {
	cases := []Case{
		{Name: "sctp/no-indication/asked", Core: true, Run: (*T).askedWithoutIndication},
		{Name: "sctp/no-indication/answered", Core: true, Run: (*T).answeredWithoutIndication},
		{Name: "sctp/many", SCTP: true, Core: true, Run: (*T).manySessions},
		{Name: "sctp/threads", SCTP: true, Core: true, Run: (*T).blockedSessions},
		{Name: "sctp/kill", SCTP: true, Core: true, Run: (*T).killKernel},
		{Name: "sctp/kill-user", SCTP: true, Run: (*T).killUser},
		{Name: "sctp/idle-link-down", SCTP: true, Run: (*T).idleLinkDown},
		{Name: "sctp/multihoming", SCTP: true, Core: true, Run: (*T).multihoming},
		{
			Name: "sctp/tests", Core: true, Limit: 3 * time.Minute, Run: (*T).sctpTests,
			Tests: []string{"github.com/goiwarp/iwarp", "github.com/goiwarp/iwarp/transport/sctpkernel"},
		},
	}
	for _, v6 := range []bool{false, true} {
		suffix := map[bool]string{true: "-v6"}[v6]
		for _, pair := range []sctpPair{{inKernel, inKernel, v6}, {inKernel, overUDP, v6}, {overUDP, inKernel, v6}} {
			name := "sctp/" + pair.String() + suffix
			cases = append(cases, Case{Name: name, SCTP: true, Core: true, Run: func(t *T) { t.sctpTalk(pair) }})
		}
	}
	for i := range cases {
		cases[i].Role, cases[i].NoRTR = Initiator, true
		cases[i].Name += "/" + string(Initiator)
	}
	return cases
}

// An sctpPair names the networks of the two ends.
type sctpPair struct {
	ours, theirs string
	v6           bool
}

func (p sctpPair) String() string {
	names := map[string]string{inKernel: "kernel", overUDP: "user"}
	return names[p.ours] + "-" + names[p.theirs]
}

// sctpServer starts the other end, and returns the address at which it listens.
func (t *T) sctpServer(pair sctpPair) (server *process, addr string) {
	require.NoError(t, commands("modprobe sctp"))
	ip := PeerIP
	if pair.v6 {
		ip = PeerIP6
	}
	plain := net.JoinHostPort(ip, strconv.Itoa(basePort))
	udp := net.JoinHostPort(ip, strconv.Itoa(udpPort)) + "/" + strconv.Itoa(basePort)
	if pair.ours != pair.theirs {
		t.encapsulate(pair.ours == inKernel)
	}
	listen, dial := plain, plain
	if pair.theirs == overUDP {
		listen = udp
	}
	if pair.ours == overUDP {
		dial = udp
	}
	return t.other("serve", pair.theirs, listen), dial
}

// self starts this program once more, at the other end.
func (t *T) self(args ...string) *process {
	program, err := os.Executable()
	require.NoError(t, err)
	return t.siw(program, args...)
}

// other is like self, and waits until the program listens.
func (t *T) other(args ...string) *process {
	p := t.self(args...)
	require.True(t, t.eventually(func() bool { return strings.Contains(p.out.String(), "ready") || !p.running() }))
	require.True(t, p.running(), "the other end listens; it said %q", p.lastWords())
	return p
}

// encapsulate makes the kernel of one end, ours or the other, use SCTP over UDP. The kernel must
// then send single packets: a pair of virtual devices passes on several packets as one, as to a
// network card that splits them, and the user-space end cannot parse that.
func (t *T) encapsulate(ours bool) {
	device, space := ourDevice, ""
	if !ours {
		device, space = peerDevice, "ip netns exec "+peerSpace+" "
	}
	set := func(port, largest int) error {
		return commands(
			fmt.Sprintf("%sip link set %s gso_max_size %d", space, device, largest),
			fmt.Sprintf("%ssysctl -q net.sctp.udp_port=%d net.sctp.encap_port=%d", space, port, port),
		)
	}
	const mtu, offload = 1500, 65536
	require.NoError(t, set(udpPort, mtu))
	t.Cleanup(func() {
		if err := set(0, offload); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// A session is a connection to the other end, with the region that the other end advertises, and
// memory of our own for each direction.
type session struct {
	*end
	theirs        iwarp.RemoteBuffer
	out, in       []byte
	outMR, backMR *iwarp.MR
}

// openSCTP is like open, for peers that may stop responding.
func (t *T) openSCTP(patience time.Duration) *end {
	rnic, err := iwarp.Open(&iwarp.Config{PeerTimeout: patience, CloseTimeout: t.pace.Stretch(closeTimeout)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = rnic.Close() })
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	return &end{t: t, rnic: rnic, pd: pd}
}

// dialSCTP connects a copy of e to the other end. Several goroutines may call it at the same
// time.
func (e *end) dialSCTP(network, addr string, n int) (*session, error) {
	qp, err := e.rnic.Dial(e.t.Ctx, network, addr, e.config(iwarp.QPConfig{}))
	if err != nil {
		return nil, err
	}
	s := &session{end: &end{t: e.t, rnic: e.rnic, pd: e.pd, qp: qp}, out: make([]byte, n), in: make([]byte, n)}
	if err := s.theirs.UnmarshalBinary(qp.PrivateData()); err != nil {
		return nil, err
	}
	if s.outMR, err = e.pd.RegisterMR(s.out, stag.LocalWrite, nil); err != nil {
		return nil, err
	}
	s.backMR, err = e.pd.RegisterMR(s.in, stag.LocalWrite, nil)
	return s, err
}

// move writes n octets at an offset to the other end, and reads them back.
func (s *session) move(off, n, seed int) error {
	fillPattern(s.out[:n], seed)
	if err := s.qp.RDMAWrite(s.t.Ctx, at(s.theirs, off, n), s.outMR.Slice(0, n)); err != nil {
		return err
	}
	if err := s.qp.RDMARead(s.t.Ctx, s.backMR.Slice(0, n), at(s.theirs, off, n)); err != nil {
		return err
	}
	return s.compare(n)
}

// compare compares the octets that have come back with those that were sent.
func (s *session) compare(n int) error {
	if !bytes.Equal(s.out[:n], s.in[:n]) {
		return fmt.Errorf("%d octets have come back otherwise than they went", n)
	}
	clear(s.in[:n])
	return nil
}

// echo sends n octets, which come back.
func (s *session) echo(n, seed int) error {
	fillPattern(s.out[:n], seed)
	received := make(chan error, 1)
	go func() {
		got, err := s.qp.Recv(s.t.Ctx, s.backMR.Slice(0, n))
		if err == nil && got != n {
			err = fmt.Errorf("%d octets have come back, of %d", got, n)
		}
		received <- err
	}()
	if err := s.qp.Send(s.t.Ctx, s.outMR.Slice(0, n)); err != nil {
		return err
	}
	if err := <-received; err != nil {
		return err
	}
	return s.compare(n)
}

// sctpTalk does every kind of operation.
func (t *T) sctpTalk(pair sctpPair) {
	_, addr := t.sctpServer(pair)
	s, err := t.openSCTP(0).dialSCTP(pair.ours, addr, served)
	require.NoError(t, err, "Dial")
	for i, r := range regions {
		if r.off+r.n <= served {
			require.NoError(t, s.move(r.off, r.n, i), "Write and Read of %d at %d", r.n, r.off)
		}
	}
	for i, n := range []int{1, 1000, 1433, 1435, 9000, 100_000, served} {
		require.NoError(t, s.echo(n, i), "Send of %d", n)
	}
	counter := at(s.theirs, 64, 8)
	require.NoError(t, s.qp.RDMAWrite(t.Ctx, counter, s.zeros()))
	for i := range uint64(10) {
		old, err := s.qp.FetchAdd(t.Ctx, counter, 3)
		require.NoError(t, err)
		require.Equal(t, 3*i, old)
	}
	old, err := s.qp.CompareSwap(t.Ctx, counter, 30, 7)
	require.NoError(t, err)
	require.EqualValues(t, 30, old)
	old, err = s.qp.FetchAdd(t.Ctx, counter, 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, old)
	require.NoError(t, s.qp.Close(), "the end is graceful")
}

// zeros returns eight octets that are zero.
func (s *session) zeros() iwarp.SGE {
	clear(s.out[:8])
	return s.outMR.Slice(0, 8)
}

// manySessions moves data at once over sixty QPs on one association; half of them end
// meanwhile.
func (t *T) manySessions() {
	const n, size = 60, 20_000
	_, addr := t.sctpServer(sctpPair{inKernel, inKernel, false})
	e := t.openSCTP(0)
	all := make([]*session, n)
	t.each(n, func(i int) (err error) {
		all[i], err = e.dialSCTP(inKernel, addr, size)
		return err
	})
	for _, s := range all {
		require.Equal(t, all[0].qp.LocalAddr().String(), s.qp.LocalAddr().String(), "one association for all")
	}
	t.each(n, func(i int) error {
		if err := all[i].move(i, size, i); err != nil || i%2 == 0 {
			return err
		}
		if i%4 == 1 {
			return all[i].qp.Close()
		}
		return all[i].qp.Abort()
	})
	t.each(n/2, func(i int) error { return all[2*i].move(0, size, i) })
}

// each calls f for 0 to n-1 concurrently.
func (t *T) each(n int, f func(i int) error) {
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { errs[i] = f(i) })
	}
	running.Wait()
	for i, err := range errs {
		require.NoError(t, err, "number %d", i)
	}
}

// blockedSessions waits for messages on twenty QPs, each on an association of its own, which
// must not occupy a thread of the operating system for each.
func (t *T) blockedSessions() {
	const n, few = 20, 10
	_, addr := t.sctpServer(sctpPair{inKernel, inKernel, false})
	before := threads(t)
	all := make([]*session, n)
	for i := range n {
		var err error
		all[i], err = t.openSCTP(0).dialSCTP(inKernel, addr, 100)
		require.NoError(t, err)
	}
	got := make(chan error, n)
	for _, s := range all {
		go func() {
			_, err := s.qp.Recv(t.Ctx, s.backMR.Slice(0, 100))
			got <- err
		}()
	}
	time.Sleep(200 * time.Millisecond) // until all of them wait
	require.Less(t, threads(t), before+few, "%d blocked QPs, %d threads before", n, before)
	for _, s := range all {
		require.NoError(t, s.qp.Send(t.Ctx, s.outMR.Slice(0, 1)))
	}
	for range n {
		require.NoError(t, <-got, "what is sent comes back")
	}
}

// threads counts the threads of this program.
func threads(t *T) int {
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	return len(tasks)
}

func (t *T) killKernel() { t.killServer(inKernel, 0, soon) }

// killUser kills a peer in user space, so that nothing ends the association: PeerTimeout must.
func (t *T) killUser() { t.killServer(overUDP, t.pace.Stretch(2*time.Second), 10*time.Second) }

// killServer kills the other end in the middle of traffic.
func (t *T) killServer(theirs string, patience, within time.Duration) {
	server, addr := t.sctpServer(sctpPair{inKernel, theirs, false})
	s, err := t.openSCTP(patience).dialSCTP(inKernel, addr, served)
	require.NoError(t, err)
	moved := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			err = s.move(0, served, 1)
		}
		moved <- err
	}()
	time.Sleep(100 * time.Millisecond)
	server.kill()
	s.endsWithin(within)
	require.ErrorIs(t, <-moved, net.ErrClosed)
}

// endsWithin expects the session to end, and to say why.
func (s *session) endsWithin(d time.Duration) {
	require.True(s.t, s.t.endsWithin(s.qp.Done(), d), "the survivor notices within %v", d)
	require.Error(s.t, s.qp.Err())
}

// idleLinkDown takes the link of an idle session down, so that only heartbeats can detect it.
func (t *T) idleLinkDown() {
	_, addr := t.sctpServer(sctpPair{inKernel, inKernel, false})
	s, err := t.openSCTP(t.pace.Stretch(2*time.Second)).dialSCTP(inKernel, addr, 100)
	require.NoError(t, err)
	require.NoError(t, s.move(0, 100, 1))
	t.linkDown()
	s.endsWithin(10 * time.Second)
}

// linkDown takes the link between the two ends down until the case ends.
func (t *T) linkDown() {
	require.NoError(t, commands("ip link set "+ourDevice+" down"))
	t.Cleanup(func() {
		// Addresses that were lost with the link must be restored.
		if err := commands("ip link set "+ourDevice+" up", "ip addr replace "+OurIP6+"/64 dev "+ourDevice+" nodad"); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// multihoming uses two addresses at each end, on two links, one of which goes down.
func (t *T) multihoming() {
	const (
		ourSecond, peerSecond     = "10.2.0.1", "10.2.0.2"
		secondDevice, otherDevice = "v2", "v3"
	)
	require.NoError(t, commands(
		"modprobe sctp",
		"ip link add "+secondDevice+" type veth peer name "+otherDevice+" netns "+peerSpace,
		"ip addr add "+ourSecond+"/24 dev "+secondDevice, "ip link set "+secondDevice+" up",
		"ip -n "+peerSpace+" addr add "+peerSecond+"/24 dev "+otherDevice, "ip -n "+peerSpace+" link set "+otherDevice+" up",
	))
	t.Cleanup(func() {
		if err := commands("ip link del " + secondDevice); err != nil {
			t.Errorf("%v", err)
		}
	})
	both := fmt.Sprintf("%s/%s:%d", PeerIP, peerSecond, basePort)
	t.other("serve", inKernel, both)
	s, err := t.openSCTP(0).dialSCTP(inKernel, both, 100_000)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{OurIP, ourSecond}, hosts(s.qp.LocalAddr()), "our addresses")
	require.ElementsMatch(t, []string{PeerIP, peerSecond}, hosts(s.qp.RemoteAddr()), "the peer's addresses")
	require.NoError(t, s.move(0, 100_000, 1))
	t.linkDown()
	for i := range 5 {
		require.NoError(t, s.move(i, 100_000, i), "over the link that is left")
	}
	require.NoError(t, s.qp.Close())
}

// hosts returns the IP addresses of an endpoint of the kernel.
func hosts(a net.Addr) []string {
	var all []string
	if a, ok := a.(sctpkernel.Addr); ok {
		for _, ip := range a.IPs {
			all = append(all, ip.String())
		}
	}
	return all
}

// sctpTests runs the tests that need a kernel with SCTP.
func (t *T) sctpTests() {
	require.NoError(t, commands("modprobe sctp"))
	for _, name := range []string{"sctpkernel", "iwarp"} {
		file := "/tmp/" + name + ".test"
		require.NoError(t, commands("cp /host/"+name+".test "+file))
		cmd := exec.Command(file, "-test.run", ".", "-test.timeout", t.pace.Stretch(80*time.Second).String(), "-test.v")
		if name == "iwarp" {
			cmd.Args[2] = "OfTheKernel|OverTheKernel"
		}
		cmd.Env = append(os.Environ(), "IWARP_REQUIRE_SCTP=1")
		p := t.start(cmd, name+".test")
		p.succeed()
		require.Contains(t, p.out.String(), "--- PASS: TestSCTP_", "%s has run", name)
		require.NotContains(t, p.out.String(), "--- SKIP", "%s has left nothing out", name)
	}
}
