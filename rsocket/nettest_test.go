package rsocket

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/goiwarp/iwarp"
)

// TestRSK_8_NetConn runs the tests of net.Conn over each kind of network.
func TestRSK_8_NetConn(t *testing.T) {
	for _, network := range []string{"pipe", "tcp", "sctp+udp"} {
		t.Run(network, func(t *testing.T) {
			rnic := open(t)
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				return makePipe(t, rnic, network)
			})
		})
	}
}

func makePipe(t *testing.T, rnic *iwarp.RNIC, network string) (net.Conn, net.Conn, func(), error) {
	l, err := Listen(t.Context(), rnic, network, where(network), nil)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { _ = l.Close() }()
	a, err := Dial(t.Context(), rnic, network, l.Addr().String(), nil)
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := l.AcceptConn()
	if err != nil {
		return nil, nil, nil, err
	}
	return a, b, func() { closeBoth(a, b) }, nil
}
