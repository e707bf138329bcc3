package wiretest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/hostile/octets"
	"github.com/goiwarp/iwarp/transport"
)

// The keys of the MPA Request and Reply (RFC 5044 section 7.1.1).
const (
	RequestKey = octets.RequestKey
	ReplyKey   = octets.ReplyKey
)

// DefaultRequest is the part after the key in the Request of a default configuration: CRCs and
// enhanced data, revision 2, A, C and D set, depths of 16.
const DefaultRequest = "50 02 0004 8010 c010"

// Local returns an address of this host to listen at, on the network.
func Local(network string) string {
	if network == "pipe" {
		return ""
	}
	return "127.0.0.1:0"
}

// Dial connects to addr and plays the initiator: it sends a Request that ends with rest.
func Dial(t testing.TB, network, addr string, rest []byte) *Peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	c, err := transport.Dial(ctx, network, addr, transport.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	p := &Peer{TB: t, Conn: c}
	p.Write(append([]byte(RequestKey), rest...))
	return p
}

// Accept listens, and plays the responder for the first connection: it reads a Request
// without private data, answers with a Reply that ends with rest, and sends the Peer to the
// channel, or closes the channel if there is none.
func Accept(t testing.TB, network string, rest []byte) (addr string, accepted <-chan *Peer) {
	t.Helper()
	l, err := transport.Listen(t.Context(), network, Local(network), transport.Options{})
	require.NoError(t, err)
	peers := make(chan *Peer, 1)
	go func() {
		defer close(peers)
		c, err := l.Accept()
		_ = l.Close()
		if err != nil {
			return
		}
		p := &Peer{TB: t, Conn: c}
		p.Read(20)
		p.Write(append([]byte(ReplyKey), rest...))
		peers <- p
	}()
	t.Cleanup(func() {
		_ = l.Close()
		if p := <-peers; p != nil { // the test did not receive it
			_ = p.Conn.Close()
		}
	})
	return l.Addr().String(), peers
}

// Serve accepts connections on the pipe and plays one script for each, in turn. The test fails
// if a connection arrives after the last script.
func Serve(t testing.TB, scripts ...func(p *Peer)) (addr string) {
	t.Helper()
	l, err := transport.Listen(context.Background(), "pipe", "", transport.Options{})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if i >= len(scripts) {
				t.Error("one connection too many")
				_ = c.Close()
				continue
			}
			scripts[i](&Peer{TB: t, Conn: c})
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// WantRequest waits for a Request whose header ends with rest and private data.
func (p *Peer) WantRequest(rest string, private ...byte) {
	p.Helper()
	p.WantOctets("the Request", append(append([]byte(RequestKey), Hex(rest)...), private...))
}

// WantReply waits for a Reply that ends with rest.
func (p *Peer) WantReply(expectation, rest string) {
	p.Helper()
	p.WantOctets(expectation, append([]byte(ReplyKey), Hex(rest)...))
}

// Reply sends a Reply that ends with rest and private data.
func (p *Peer) Reply(rest string, private ...byte) {
	p.Helper()
	p.Write(append(append([]byte(ReplyKey), Hex(rest)...), private...))
}
