package cm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/goiwarp/iwarp"
)

// A nameServer answers lookups of A records. Its resolver sends them over a net.Pipe.
type nameServer struct {
	*testing.T
	asked  atomic.Int64                   // for A
	under  gauge                          // way
	answer func(name string) []netip.Addr // nil: there is no such name
	delay  time.Duration
	all    sync.WaitGroup
}

func newNameServer(t *testing.T, answer func(name string) []netip.Addr) (*nameServer, *net.Resolver) {
	s := &nameServer{T: t, answer: answer}
	t.Cleanup(s.all.Wait)
	return s, &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		s.all.Go(func() { s.serve(there) })
		return here, nil
	}}
}

// serve answers in the framing of TCP, which the resolver uses on anything that is not a net.PacketConn.
func (s *nameServer) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	for {
		var n [2]byte
		if _, err := readFull(c, n[:]); err != nil {
			return
		}
		b := make([]byte, int(n[0])<<8|int(n[1]))
		if _, err := readFull(c, b); err != nil {
			return
		}
		var m dnsmessage.Message
		require.NoError(s, m.Unpack(b))
		q := m.Questions[0]
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q.Type == dnsmessage.TypeA {
			s.asked.Add(1)
			s.under.add(1)
			time.Sleep(s.delay)
			s.under.add(-1)
		}
		addrs := s.answer(q.Name.String())
		if addrs == nil {
			m.RCode = dnsmessage.RCodeNameError
		}
		for _, a := range addrs {
			if q.Type == dnsmessage.TypeA {
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
					Body:   &dnsmessage.AResource{A: a.As4()},
				})
			}
		}
		out, err := m.Pack()
		require.NoError(s, err)
		if _, err := c.Write(append([]byte{byte(len(out) >> 8), byte(len(out))}, out...)); err != nil {
			return
		}
	}
}

func readFull(c net.Conn, b []byte) (int, error) {
	for n := 0; n < len(b); {
		m, err := c.Read(b[n:])
		if n += m; err != nil {
			return n, err
		}
	}
	return len(b), nil
}

func loopback(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} }

// named makes n targets for each of a number of names.
func named(n, names int, port string) func(func(Target) bool) {
	return func(yield func(Target) bool) {
		for i := range n * names {
			if !yield(Target{Network: "tcp", Addr: fmt.Sprintf("host%d.iwarp.test.:%s", i%names, port)}) {
				return
			}
		}
	}
}

func portOf(t *testing.T, addr string) string {
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return port
}

// TestCM_46_OneLookupForEachName: and some of them run at the same time.
func TestCM_46_OneLookupForEachName(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	client := newEnd(t, iwarp.Limits{})
	s, resolver := newNameServer(t, loopback)
	s.delay = time.Millisecond
	_, all := collect(t, DialMany(t.Context(), named(10, 20, portOf(t, h.addr)), &Options{
		RNIC: client.rnic, QP: client.config(), Resolver: resolver, Stage: [8]int{StageResolve: 5}, InFlight: 40,
	}))
	require.Len(t, all, 200)
	require.Zero(t, countFailed(all))
	require.EqualValues(t, 20, s.asked.Load())
	require.LessOrEqual(t, s.under.most.Load(), int64(5))
	client.waitsUntilIdle()
}

// TestCM_52_FailedLookupIsSharedAndRetried: by all targets that got its error, together.
func TestCM_52_FailedLookupIsSharedAndRetried(t *testing.T) {
	client := newEnd(t, iwarp.Limits{})
	s, resolver := newNameServer(t, func(string) []netip.Addr { return nil })
	_, all := collect(t, DialMany(t.Context(), named(10, 1, "1"), &Options{
		RNIC: client.rnic, QP: client.config(), Resolver: resolver,
		Retry: func(_ Target, err error, attempt int) (time.Duration, bool) {
			var de *net.DNSError
			return 500 * time.Millisecond, errors.As(err, &de) && de.IsNotFound && attempt < 3
		},
	}))
	for _, r := range all {
		require.Equal(t, 3, r.Attempts)
		require.Equal(t, StageResolve, r.Stage)
	}
	require.EqualValues(t, 3, s.asked.Load())
}

// TestCM_48_AddressesOfAHostAreTriedInOrder: until one connects.
func TestCM_48_AddressesOfAHostAreTriedInOrder(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	client := newEnd(t, iwarp.Limits{})
	_, resolver := newNameServer(t, func(string) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("127.0.0.3"), netip.MustParseAddr("127.0.0.1")}
	})
	_, all := collect(t, DialMany(t.Context(), named(1, 1, portOf(t, h.addr)), &Options{
		RNIC: client.rnic, QP: client.config(), Resolver: resolver,
	}))
	require.Zero(t, countFailed(all), "%v", all[0].Err)
	require.Equal(t, 1, all[0].Attempts)
}

// TestCM_60_WhatIsWrongIsFoundBeforeAPacket: in a configuration or an address. It does not affect
// others.
func TestCM_60_WhatIsWrongIsFoundBeforeAPacket(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	client, other := newEnd(t, iwarp.Limits{}), newEnd(t, iwarp.Limits{})
	s, resolver := newNameServer(t, loopback)
	port := portOf(t, h.addr)
	bad := func(change func(c *iwarp.QPConfig)) *iwarp.QPConfig {
		c := client.config()
		change(c)
		return c
	}
	wrong := []Target{
		{Network: "tcp", Addr: "host.iwarp.test.:" + port, QP: &iwarp.QPConfig{}},
		{Network: "tcp", Addr: "host.iwarp.test.:" + port, QP: other.config()},
		{Network: "tcp", Addr: "host.iwarp.test.:" + port, QP: bad(func(c *iwarp.QPConfig) { c.PrivateData = make([]byte, 600) })},
		{Network: "tcp", Addr: h.addr, QP: bad(func(c *iwarp.QPConfig) { c.PrivateData = make([]byte, 600) })},
		{Network: "tcp", Addr: h.addr, QP: bad(func(c *iwarp.QPConfig) { c.SendDepth = -1 })},
		{Network: "tcp", Addr: h.addr, QP: bad(func(c *iwarp.QPConfig) { c.MPA.Revision = 7 })},
		{Network: "tcp", Addr: "host.iwarp.test.:" + port, QP: bad(func(c *iwarp.QPConfig) { c.ORD = client.rnic.Limits().MaxORD + 1 })},
		{Network: "tcp", Addr: "host.iwarp.test."},
		{Network: "tcp", Addr: "host.iwarp.test.:99999"},
		{Network: "tcp", Addr: "host.iwarp.test.:no-such-service"},
		{Network: "udp", Addr: h.addr},
	}
	for _, target := range wrong {
		_, all := collect(t, DialMany(t.Context(), func(yield func(Target) bool) {
			_ = yield(target) && yield(Target{Network: "tcp", Addr: h.addr})
		}, &Options{RNIC: client.rnic, QP: client.config(), Resolver: resolver}))
		require.Equal(t, 1, countFailed(all), "%v", target)
	}
	require.Zero(t, s.asked.Load(), "no name is looked up")
	require.Eventually(t, func() bool { return h.accepted.Load() == int64(len(wrong)) }, 30*time.Second, time.Millisecond)
	client.waitsUntilIdle()

	_, all := collect(t, DialMany(t.Context(), func(yield func(Target) bool) { yield(Target{}) }, nil))
	require.ErrorIs(t, all[0].Err, errNoRNIC)
}

// TestCM_49_BreakEndsLookups.
func TestCM_49_BreakEndsLookups(t *testing.T) {
	h := listens(t, "tcp", "127.0.0.1:0", 0)
	client := newEnd(t, iwarp.Limits{})
	asked, ended := make(chan bool, 10), make(chan error, 10)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case asked <- true:
		default:
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}}
	for _, r := range DialMany(t.Context(), func(yield func(Target) bool) {
		if yield(Target{Network: "tcp", Addr: "host.iwarp.test.:1"}) {
			<-asked
			yield(Target{Network: "tcp", Addr: h.addr})
		}
	}, &Options{RNIC: client.rnic, QP: client.config(), Resolver: resolver}) {
		require.NoError(t, r.Err)
		require.NoError(t, r.QP.Abort())
		break
	}
	require.ErrorIs(t, <-ended, context.Canceled, "the resolver itself gives up after five seconds")
	client.waitsUntilIdle()
}

// look adds a lookup that is in progress.
func (r *resolver) look(n hostName) *lookup {
	r.forget()
	l := &lookup{done: make(chan struct{})}
	r.known[n] = l
	return l
}

// TestCM_50_NamesAreForgotten: if there are too many, the names whose lookups ended first.
func TestCM_50_NamesAreForgotten(t *testing.T) {
	r := &resolver{known: make(map[hostName]*lookup)}
	name := func(i int) hostName { return hostName{"ip", fmt.Sprint(i)} }
	for i := range maxNames + 100 {
		r.ended(name(i), r.look(name(i)), nil, nil)
	}
	require.Len(t, r.known, maxNames)
	require.Equal(t, maxNames, r.over.Len())
	require.NotContains(t, r.known, name(99))
	require.Contains(t, r.known, name(100))
}

// TestLookupsInProgressAreNotForgotten, however many there are.
func TestLookupsInProgressAreNotForgotten(t *testing.T) {
	const many = maxNames + 100
	r := &resolver{known: make(map[hostName]*lookup)}
	for i := range many {
		r.look(hostName{"ip", fmt.Sprint(i)})
	}
	require.Len(t, r.known, many)
	l := r.known[hostName{"ip", "7"}]
	r.drop(hostName{"ip", "7"}, l)
	r.ended(hostName{"ip", "7"}, l, nil, nil)
	require.Zero(t, r.over.Len(), "it was dropped")
}

// TestRepeatedLookupHasOnePlace among the lookups that have ended.
func TestRepeatedLookupHasOnePlace(t *testing.T) {
	_, named := newNameServer(t, func(string) []netip.Addr { return nil })
	var all sync.WaitGroup
	r := &resolver{net: named, ctx: t.Context(), all: &all, known: make(map[hostName]*lookup)}
	var last *lookup
	for range 3 {
		l, err := r.resolve(t.Context(), &timeLimit{}, hostName{"ip4", "unknown.test."}, last, func() error { return nil })
		require.Error(t, err)
		require.NotSame(t, last, l)
		last = l
		require.Equal(t, 1, r.over.Len())
	}
	all.Wait()
}
