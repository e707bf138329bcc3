package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A bridge takes RPC with record marks from a TCP client, and carries it over RDMA as Linux does: long arguments of
// WRITE in a Read chunk, data of READ in a Write chunk, and other long replies in a Reply chunk.
type bridge struct {
	l              net.Listener
	qp             *iwarp.QP
	inline, memory []byte
	in, out, chunk *iwarp.MR
	tasks          sync.WaitGroup
	written        int // octets that came by chunks
	read           int // octets that the server has read
}

const (
	threshold   = 4096
	chunkLen    = 1<<20 + 4096
	firstOffset = 1 << 63
)

func newBridge(t *testing.T, addr string) *bridge {
	t.Helper()
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rnic.Close()) })
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	b := &bridge{inline: make([]byte, 2*threshold), memory: make([]byte, chunkLen)}
	b.in, err = pd.RegisterMR(b.inline[:threshold], stag.LocalWrite, nil)
	require.NoError(t, err)
	b.out, err = pd.RegisterMR(b.inline[threshold:], 0, nil)
	require.NoError(t, err)
	b.chunk, err = pd.RegisterMR(b.memory, stag.LocalWrite|stag.RemoteRead|stag.RemoteWrite, &iwarp.MROptions{BaseTO: firstOffset})
	require.NoError(t, err)
	b.qp, err = rnic.Dial(within(t), "tcp", addr, &iwarp.QPConfig{
		PD: pd, IRD: 128, ORD: -1, PrivateData: []byte{0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3}, MPA: iwarp.MPAOptions{ClientServer: true},
	})
	require.NoError(t, err)
	require.Equal(t, []byte{0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3}, b.qp.PrivateData())
	b.l, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.tasks.Go(func() { b.serve(within(t)) })
	t.Cleanup(func() {
		_ = b.l.Close()
		_ = b.qp.Close()
		b.tasks.Wait()
	})
	return b
}

// serve serves one client.
func (b *bridge) serve(ctx context.Context) {
	c, err := b.l.Accept()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	for {
		var mark [4]byte
		if _, err := io.ReadFull(c, mark[:]); err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint32(mark[:])&^(1<<31))
		if _, err := io.ReadFull(c, msg); err != nil {
			return
		}
		reply, err := b.call(ctx, msg)
		if err != nil {
			return
		}
		if _, err := c.Write(append(words(1<<31|uint32(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func words(w ...uint32) (b []byte) {
	for _, x := range w {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

// segment describes the memory of the bridge as a segment.
func (b *bridge) segment(n int) []byte {
	return binary.BigEndian.AppendUint64(words(uint32(b.chunk.STag()), uint32(n)), firstOffset)
}

// data returns the length of the data of a WRITE. The credential and the verifier must be empty.
func data(msg []byte) int {
	handle := int(binary.BigEndian.Uint32(msg[40:])+3) &^ 3
	return int(binary.BigEndian.Uint32(msg[44+handle+8:]))
}

const (
	procRead  = 6
	procWrite = 7
)

var errReply = errors.New("a reply that is not to be")

// call carries one call, and returns the reply.
func (b *bridge) call(ctx context.Context, msg []byte) ([]byte, error) {
	isNFS := binary.BigEndian.Uint32(msg[12:]) == 100003
	proc := binary.BigEndian.Uint32(msg[20:])
	header := words(binary.BigEndian.Uint32(msg), 1, 128, 0)
	reads, writes, reply := words(0), words(0), words(0)
	switch {
	case isNFS && proc == procWrite && data(msg) > 100:
		n := data(msg)
		position := len(msg) - (n+3)&^3
		copy(b.memory, msg[position:position+n])
		reads = slices.Concat(words(1, uint32(position)), b.segment(n), words(0))
		msg = msg[:position]
		b.read += n
	case isNFS && proc == procRead:
		writes = slices.Concat(words(1, 1), b.segment(chunkLen), words(0))
	default:
		reply = append(words(1, 1), b.segment(chunkLen)...)
	}
	n := copy(b.inline[threshold:], slices.Concat(header, reads, writes, reply, msg))
	received := make(chan error, 1)
	var length int
	go func() {
		var err error
		length, err = b.qp.Recv(ctx, b.in.Slice(0, threshold))
		received <- err
	}()
	if err := b.qp.Send(ctx, b.out.Slice(0, n)); err != nil {
		return nil, err
	}
	if err := <-received; err != nil {
		return nil, err
	}
	return b.reply(b.inline[:length])
}

// reply assembles a reply.
func (b *bridge) reply(m []byte) ([]byte, error) {
	word := func(at int) int { return int(binary.BigEndian.Uint32(m[at:])) }
	switch {
	case word(12) > 1 || word(16) != 0:
		return nil, errReply
	case word(12) == 1: // NOMSG: the message is in the Reply chunk
		b.written += word(36)
		return slices.Clone(b.memory[:word(36)]), nil
	case word(20) == 1: // a Write chunk
		n := word(32)
		b.written += n
		return slices.Concat(m[52:], b.memory[:n], make([]byte, -n&3)), nil
	case word(24) == 1: // the Reply chunk, which was not used
		return slices.Clone(m[48:]), nil
	}
	return slices.Clone(m[28:]), nil
}
