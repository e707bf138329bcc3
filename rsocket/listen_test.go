package rsocket

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/raceorder"
)

// TestRSK_16_OtherClientsAndSlowPeers do not delay others, and end nothing.
func TestRSK_16_OtherClientsAndSlowPeers(t *testing.T) {
	l := listen(t, open(t), "tcp", nil)
	for _, octets := range []string{"", "b3ba6a62 a cookie of 37 octets, or so\n", "MPA ID Req"} {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = c.Write([]byte(octets))
		require.NoError(t, err)
	}
	for range 3 {
		c, err := Dial(within(t), l.rnic, "tcp", l.Addr().String(), nil)
		require.NoError(t, err)
		accepted, err := l.Accept()
		require.NoError(t, err)
		require.Equal(t, iwarp.StateRTS, accepted.(*Conn).QP().State())
		require.Equal(t, c.LocalAddr().String(), accepted.RemoteAddr().String())
		require.Equal(t, l.Addr().String(), accepted.LocalAddr().String())
		closeBoth(c, accepted.(*Conn))
	}
}

// TestRSK_16_CloseLeavesConnectionsAlive, except those that Accept has not returned.
func TestRSK_16_CloseLeavesConnectionsAlive(t *testing.T) {
	rnic := open(t)
	l, err := Listen(within(t), rnic, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	a, err := Dial(within(t), rnic, "tcp", l.Addr().String(), nil)
	require.NoError(t, err)
	b, err := l.AcceptConn()
	require.NoError(t, err)
	left, err := Dial(within(t), rnic, "tcp", l.Addr().String(), nil)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Empty(t, l.places, "each has left its place to another one")
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = left.Read(make([]byte, 1))
	require.Error(t, err, "it ends")
	require.NoError(t, left.Close())

	_, err = a.Write([]byte("x"))
	require.NoError(t, err)
	_, err = b.Read(make([]byte, 1))
	require.NoError(t, err)
	closeBoth(a, b)
}

// TestRSK_16_TheRNICEnds, and so do its listeners and connections.
func TestRSK_16_TheRNICEnds(t *testing.T) {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	a, b := unclosedPair(t, rnic, "tcp", nil, nil)
	l, err := Listen(within(t), rnic, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	require.NoError(t, rnic.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	closed := false // the second end may have learned of the end of the first
	for _, c := range []*Conn{a, b} {
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
		closed = closed || errors.Is(err, net.ErrClosed)
		_ = c.Close()
	}
	require.True(t, closed, "it is this side that has ended it")
	_ = l.Close()
	_, err = Dial(within(t), rnic, "tcp", "127.0.0.1:1", nil)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = Listen(within(t), rnic, "tcp", "127.0.0.1:0", nil)
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestRSK_16_ManyConnections at the same time.
func TestRSK_16_ManyConnections(t *testing.T) {
	l := listen(t, open(t), "tcp", &small)
	const n = 40
	errs := make(chan error, 2*n)
	for range n {
		go func() {
			c, err := Dial(context.Background(), l.rnic, "tcp", l.Addr().String(), &small)
			if err == nil {
				_, err = c.Read(make([]byte, 1))
				err = errors.Join(err, c.Close())
			}
			errs <- err
		}()
		go func() {
			c, err := l.Accept()
			if err == nil {
				_, err = c.Write([]byte("x"))
				err = errors.Join(err, c.Close())
			}
			errs <- err
		}()
	}
	for range 2 * n {
		require.NoError(t, <-errs)
	}
}

// authenticates makes the Authenticator of a side.
func authenticates(t testing.TB, key cm.Key, name byte) iwarp.Authenticator {
	t.Helper()
	ring, err := cm.NewRing(key)
	require.NoError(t, err)
	auth, err := cm.New(&cm.Config{Ring: ring, ID: [16]byte{name}})
	require.NoError(t, err)
	return auth
}

// TestRSK_16_OneConfigForBothSides has an Authenticator for Dial and another one for Listen, and each is used only there.
func TestRSK_16_OneConfigForBothSides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		master := make([]byte, 32)
		cfg := &Config{}
		cfg.QP.Auth = authenticates(t, cm.Key{ID: 1, Secret: cm.ClientKey(master, 1, [16]byte{'c'}), Primary: true}, 'c')
		cfg.Listen.Auth = authenticates(t, cm.Key{ID: 1, Secret: master, Derive: true}, 's')
		dialled, accepted := pair(t, "pipe", cfg, cfg)
		for c, peer := range map[*Conn]byte{dialled: 's', accepted: 'c'} {
			found, known := c.QP().Peer()
			require.True(t, known)
			require.Equal(t, [16]byte{peer}, found.Name)
		}
	})
}

// TestAccept by a program with a listener of its own.
func TestAccept(t *testing.T) {
	rnic := open(t)
	l, err := rnic.Listen(within(t), "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	dial := Dialer(rnic, nil)
	for _, credits := range []int{0, 1} {
		dialled := make(chan error, 1)
		go func() {
			c, err := dial(context.Background(), "tcp", l.Addr().String())
			if err == nil {
				_ = c.Close()
			}
			dialled <- err
		}()
		cr, err := l.Accept(within(t))
		require.NoError(t, err)
		c, err := Accept(within(t), rnic, cr, &Config{Credits: credits})
		if credits == 1 {
			require.ErrorContains(t, err, "Config.Credits is 1, which is not between 16 and 65534")
			require.ErrorIs(t, <-dialled, iwarp.ErrRejected)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, <-dialled)
		_ = c.Close()
	}
}

// TestAListenerTellsWhatItRefuses, and why: the initiator does not use rsockets, or this side cannot go on.
func TestAListenerTellsWhatItRefuses(t *testing.T) {
	server, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxPD: 1}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	type refusal struct {
		remote net.Addr
		cause  error
	}
	refused := make(chan refusal, 1)
	l := listen(t, server, "tcp", &Config{Refused: func(remote net.Addr, cause error) { refused <- refusal{remote, cause} }})
	rnic := open(t)
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	_, err = rnic.Dial(within(t), "tcp", l.Addr().String(), &iwarp.QPConfig{PD: pd})
	require.ErrorIs(t, err, iwarp.ErrRejected)
	r := <-refused
	require.ErrorIs(t, r.cause, ErrProtocol)
	require.Equal(t, "127.0.0.1", r.remote.(*net.TCPAddr).IP.String())

	_, err = server.AllocPD()
	require.NoError(t, err)
	_, err = Dial(within(t), rnic, "tcp", l.Addr().String(), nil)
	require.ErrorIs(t, err, iwarp.ErrRejected)
	require.ErrorIs(t, (<-refused).cause, iwarp.ErrLimit)
}

// TestConfigsThatAreRefused by Dial and Listen.
func TestConfigsThatAreRefused(t *testing.T) {
	rnic := open(t)
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	cq, err := rnic.CreateCQ(1)
	require.NoError(t, err)
	for want, cfg := range map[string]Config{
		"Config.ReadBuffer is 4095":  {ReadBuffer: 4095},
		"Config.MaxReadBuffer is 1":  {MaxReadBuffer: 1},
		"Config.WriteBuffer is -1":   {WriteBuffer: -1},
		"Config.IOMap is 32513":      {IOMap: 32513},
		"Config.Credits is 65535":    {Credits: 65535},
		"which each Conn has of":     {QP: iwarp.QPConfig{PD: pd}},
		"has a PD, CQ or SRQ":        {QP: iwarp.QPConfig{RecvCQ: cq}},
		"which the protocol":         {QP: iwarp.QPConfig{SendDepth: 1}},
		"has a depth":                {QP: iwarp.QPConfig{RecvDepth: 1}},
		"has a depth or PrivateData": {QP: iwarp.QPConfig{PrivateData: []byte("x")}},
		"MPA.RTR has RTRSend":        {QP: iwarp.QPConfig{MPA: iwarp.MPAOptions{RTR: iwarp.RTRSend | iwarp.RTRWrite}}},
	} {
		_, err := Dial(within(t), rnic, "tcp", "127.0.0.1:1", &cfg)
		require.ErrorContains(t, err, want)
		_, err = Listen(within(t), rnic, "tcp", "127.0.0.1:0", &cfg)
		require.ErrorContains(t, err, want)
	}
}

// TestAnRTRSendIsNotTaken: it would be a message of 0 octets, which the protocol does not have.
func TestAnRTRSendIsNotTaken(t *testing.T) {
	l := listen(t, open(t), "pipe", nil)
	pd, err := l.rnic.AllocPD()
	require.NoError(t, err)
	_, err = l.rnic.Dial(within(t), "pipe", l.Addr().String(), &iwarp.QPConfig{
		PD: pd, PrivateData: itsPrivate.Append(nil), MPA: iwarp.MPAOptions{RTR: iwarp.RTRSend},
	})
	require.ErrorContains(t, err, "no matching RTR option")
}

// TestRSK_17_MemoryOfAnIdleConnection is that of its buffers, and as much as the package documentation says.
func TestRSK_17_MemoryOfAnIdleConnection(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector has memory of its own")
	}
	const n = 50
	l := listen(t, open(t), "pipe", nil)
	before := heap()
	conns := make([]*Conn, 0, 2*n)
	for range n {
		c, err := Dial(within(t), l.rnic, "pipe", l.Addr().String(), nil)
		require.NoError(t, err)
		accepted, err := l.AcceptConn()
		require.NoError(t, err)
		conns = append(conns, c, accepted)
	}
	each := (heap() - before) / (2 * n)
	t.Log(each, "octets for each Conn")
	for i := 0; i < len(conns); i += 2 {
		closeBoth(conns[i], conns[i+1])
	}
	require.Less(t, each, int64(2*defaultBuffer+overhead))
}

// overhead is what the package documentation says about a Conn with the default Credits, plus a margin.
const overhead = 100 << 10

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestRSK_15_AReplyThatIsRefused: Dial fails, and releases everything.
func TestRSK_15_AReplyThatIsRefused(t *testing.T) {
	rnic := open(t)
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	l, err := rnic.Listen(within(t), "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	dials, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxPD: 1}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dials.Close()) })
	for range 2 {
		dialled := make(chan error, 1)
		go func() {
			_, err := Dial(within(t), dials, "tcp", l.Addr().String(), nil)
			dialled <- err
		}()
		cr, err := l.Accept(within(t))
		require.NoError(t, err)
		qp, err := cr.Accept(within(t), &iwarp.QPConfig{PD: pd, PrivateData: []byte("no rsocket")})
		require.NoError(t, err)
		require.ErrorIs(t, <-dialled, ErrProtocol)
		_ = qp.Abort()
	}
}
