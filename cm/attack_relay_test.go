package cm_test

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// A relay stands between an initiator and a host, and changes what passes. A nil function
// changes nothing; a function that returns nil ends the connection.
type relay struct {
	request, reply, first func([]byte) []byte // first gets the ULPDU
	sent                  atomic.Int64        // octets of the initiator after its Request
	hangsUp               bool                // nothing is sent after the changed frame
}

// between connects to a host through the relay. all waits for the relay's goroutine.
func (m *relay) between(t testing.TB, all *sync.WaitGroup, network, addr string) net.Conn {
	t.Helper()
	l, err := transport.Listen(t.Context(), network, wiretest.Local(network), transport.Options{})
	require.NoError(t, err)
	defer l.Close()
	near, err := transport.Dial(t.Context(), network, l.Addr().String(), transport.Options{})
	require.NoError(t, err)
	far, err := l.Accept()
	require.NoError(t, err)
	c, err := transport.Dial(t.Context(), network, addr, transport.Options{})
	require.NoError(t, err)
	all.Go(func() { m.run(far, c) })
	return near
}

func (m *relay) run(client, server net.Conn) {
	defer func() {
		_ = client.Close()
		_ = server.Close()
	}()
	if !m.pass(client, server, readFrame, m.request) || !m.pass(server, client, readFrame, m.reply) {
		return
	}
	first := func(b []byte) []byte {
		n := int(binary.BigEndian.Uint16(b))
		if b = m.first(b[2 : 2+n]); b == nil {
			return nil
		}
		return wiretest.FPDU(b)
	}
	if m.first == nil {
		first = nil
	}
	if !m.pass(client, server, func(c net.Conn) ([]byte, error) {
		b, err := readFPDU(c)
		m.sent.Add(int64(len(b)))
		return b, err
	}, first) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(server, client)
	_ = server.Close()
	back.Wait()
}

// pass forwards what it reads, with a change.
func (m *relay) pass(from, to net.Conn, read func(net.Conn) ([]byte, error), change func([]byte) []byte) bool {
	b, err := read(from)
	if err != nil {
		return false
	}
	if change != nil {
		b = change(b)
	}
	if b == nil {
		return false
	}
	if _, err = to.Write(b); err == nil && change != nil && m.hangsUp {
		err = to.(interface{ CloseWrite() error }).CloseWrite()
	}
	return err == nil
}

// A countingHandler counts the records of a log.
type countingHandler struct{ n atomic.Int64 }

func (h *countingHandler) logger() *slog.Logger                         { return slog.New(h) }
func (h *countingHandler) count() int                                   { return int(h.n.Load()) }
func (h *countingHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (h *countingHandler) Handle(context.Context, slog.Record) error    { h.n.Add(1); return nil }
func (h *countingHandler) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h *countingHandler) WithGroup(string) slog.Handler                { return h }
