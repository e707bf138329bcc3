package iwarp_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/selfsigned"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// A middle is an attacker on the network between two ends: it sees all octets, and can change some.
type middle struct {
	mu   sync.Mutex
	seen []byte
	bend func(b []byte) []byte // replaces the client's next octets; nil: they pass unchanged
}

// pass passes on what comes from one end, until it ends.
func (m *middle) pass(from io.Reader, to io.WriteCloser, bends bool) {
	defer to.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		b := buf[:n]
		m.mu.Lock()
		m.seen = append(m.seen, b...)
		if bends && m.bend != nil && n > 0 {
			b = m.bend(bytes.Clone(b))
			m.bend = nil
		}
		m.mu.Unlock()
		if _, werr := to.Write(b); err != nil || werr != nil {
			return
		}
	}
}

// TestAttackOnTLS: an attacker on the network reads a stream under TLS, and changes, inserts or repeats octets of it.
// Nothing can be read, and nothing that was not sent is placed.
func TestAttackOnTLS(t *testing.T) {
	secret := []byte("sixteen octets!!")
	for name, bend := range map[string]func(b []byte) []byte{
		"reads":            nil,
		"turns a bit":      func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"inserts octets":   func(b []byte) []byte { return append([]byte{0x17, 3, 3, 0, 20}, append(make([]byte, 20), b...)...) },
		"repeats a record": func(b []byte) []byte { return append(bytes.Clone(b), b...) },
		"cuts octets out":  func(b []byte) []byte { return append(b[:7:7], b[12:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			cert, roots := selfsigned.New("iwarp.test")
			ctx := testContext(t)
			client, server := newSide(t, nil), newSide(t, nil)
			a, x := transport.Pipe(transport.PipeOptions{})
			y, b := transport.Pipe(transport.PipeOptions{})
			m := &middle{}
			var passing sync.WaitGroup
			passing.Go(func() { m.pass(x, y, true) })
			passing.Go(func() { m.pass(y, x, false) })
			accepted := make(chan error, 1)
			go func() {
				cr, err := server.rnic.Server(ctx, b, &iwarp.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
				if err == nil {
					server.qp, err = cr.Accept(ctx, &iwarp.QPConfig{PD: server.pd})
				}
				accepted <- err
			}()
			var err error
			client.qp, err = client.rnic.Client(ctx, a, &iwarp.QPConfig{PD: client.pd, TLS: &tls.Config{RootCAs: roots, ServerName: "iwarp.test"}})
			require.NoError(t, err)
			require.NoError(t, <-accepted)
			mem, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
			src, local := client.register(64, stag.LocalWrite, nil)
			copy(src, secret)
			require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 16), local.Slice(0, 16)))
			require.NoError(t, client.qp.RDMARead(ctx, local.Slice(32, 16), mr.Advertise(0, 16)))

			m.mu.Lock()
			m.bend = bend
			require.NotContains(t, string(m.seen), string(secret), "the data cannot be read")
			m.mu.Unlock()
			copy(src, "what is attacked")
			err = client.qp.RDMAWrite(ctx, mr.Advertise(32, 16), local.Slice(0, 16))
			if err == nil {
				err = client.qp.RDMARead(ctx, local.Slice(32, 16), mr.Advertise(32, 16))
			}
			if bend == nil {
				require.NoError(t, err)
				require.NoError(t, client.qp.Abort())
			} else {
				require.ErrorIs(t, err, net.ErrClosed, "the connection ends")
				<-server.qp.Done()
				require.Contains(t, []string{"what is attacked", string(make([]byte, 16))}, string(mem[32:48]), "what was sent, or nothing")
			}
			require.Equal(t, string(secret), string(mem[:16]))
			<-client.qp.Done()
			<-server.qp.Done()
			_, _ = x.Close(), y.Close()
			passing.Wait()
		})
	}
}
