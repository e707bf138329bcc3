package rmaperf

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

const (
	// streamBlock is how many octets a client of a stream requests at a time.
	streamBlock = 1 << 20
	// streamCall is how many octets of a block go into one Write.
	streamCall = 256 << 10
)

// A stream sends the octets that a client requests over TLS 1.3, as a Go program would do without
// this library.
type stream struct{ cfg *tls.Config }

func newStream() (*stream, error) {
	var lc iwarp.ListenConfig
	err := authmode.Respond(authmode.TLS, &lc)
	return &stream{lc.TLS}, err
}

// take answers a number of blocks, of eight octets, with that many blocks.
func (s *stream) take(ctx context.Context, c net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	t := tls.Server(c, s.cfg)
	defer t.Close() //nolint:errcheck // it has ended
	block := peer.SourceOf(streamCall)
	for {
		var head [8]byte
		if _, err := io.ReadFull(t, head[:]); err != nil {
			return err
		}
		for range binary.BigEndian.Uint64(head[:]) * (streamBlock / streamCall) {
			if _, err := t.Write(block); err != nil {
				return err
			}
		}
	}
}

func (s *stream) close() error { return nil }

// A streamArm reads such a stream.
type streamArm struct {
	c    *tls.Conn
	sink []byte
}

func dialStream(ctx context.Context, addr string) (*streamArm, error) {
	var qc iwarp.QPConfig
	if err := authmode.Initiate(authmode.TLS, &qc); err != nil {
		return nil, err
	}
	c, err := peer.Dial(addr, peer.DefaultCC)
	if err != nil {
		return nil, err
	}
	a := &streamArm{c: tls.Client(c, qc.TLS), sink: make([]byte, streamBlock)}
	if err := a.c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return a, nil
}

// suite returns the name of the cipher suite.
func (a *streamArm) suite() string { return tls.CipherSuiteName(a.c.ConnectionState().CipherSuite) }

// run reads n blocks.
func (a *streamArm) run(n int) error {
	if _, err := a.c.Write(binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
		return err
	}
	for range n {
		if _, err := io.ReadFull(a.c, a.sink); err != nil {
			return err
		}
	}
	return nil
}

func (a *streamArm) close() error { return a.c.Close() }
