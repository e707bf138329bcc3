package sctpudp

import (
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closedPort is an address whose socket has been closed.
func closedPort(t *testing.T, host string) string {
	pc, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skip("no such network: ", err)
	}
	defer pc.Close()
	return pc.LocalAddr().String()
}

func TestDialToAClosedPortIsRefusedAtOnce(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		c := NewClient(Config{})
		start := time.Now()
		_, err := c.Open(t.Context(), closedPort(t, host))
		require.ErrorIs(t, err, syscall.ECONNREFUSED, host)
		require.Less(t, time.Since(start), 5*time.Second, host)
		c.Close()
	}
}

// TestForgedRefusalIsNotBelieved: the sender of an ICMP message that quotes an INIT other than
// ours has not seen ours.
func TestForgedRefusalIsNotBelieved(t *testing.T) {
	h := &handshake{
		e: &endpoint{addr: Addr{Port: 7}}, peer: peer{netip.MustParseAddrPort("127.0.0.1:9"), 9},
		ours: newInitiation(), none: make(chan struct{}, 1),
	}
	ours := h.init()
	another := slices.Clone(ours)
	another[headerSize+chunkHeaderSize] ^= 1 // the tag
	for what, quoted := range map[string][]byte{
		"another tag": another, "too little to tell": ours[:headerSize+chunkHeaderSize+3], "nothing": nil, "more than was sent": append(slices.Clone(ours), 0),
	} {
		h.refused(quoted)
		require.Empty(t, h.none, what)
	}
	h.refused(ours)
	h.refused(ours[:headerSize+chunkHeaderSize+4])
	require.Len(t, h.none, 1, "ours, or as much of it as ICMP quotes")
}

// TestRefusalDoesNotEndAnAssociation: ICMP is not heard of any more.
func TestRefusalDoesNotEndAnAssociation(t *testing.T) {
	p := newPair(t)
	s, err := p.c.Open(t.Context(), p.l.Addr().String())
	require.NoError(t, err)
	a := s.(*stream).a
	require.NoError(t, p.l.e.pc.Close()) // what is sent from now on finds no port
	for range 3 {
		a.say(chunkHeartbeat, []byte{0, 1, 0, 8, 0, 0, 0, 0})
		time.Sleep(10 * time.Millisecond)
	}
	require.NoError(t, a.Err())
	heard := 0
	control(a.e.pc, func(fd int) { heard, _ = syscall.GetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_RECVERR) })
	require.Zero(t, heard)
}
