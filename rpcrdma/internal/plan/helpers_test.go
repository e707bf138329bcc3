package plan

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// A client has memory by handle, which begins at offset 0.
type client map[uint32][]byte

// message makes a message of 40 octets, an opaque, and tail octets behind it. It returns the position of the opaque.
func message(opaque, tail int) (msg []byte, position int) {
	for i := range byte(40) {
		msg = append(msg, 0x80+i)
	}
	msg = binary.BigEndian.AppendUint32(msg, uint32(opaque))
	position = len(msg)
	for i := range opaque {
		msg = append(msg, byte(1+i%250))
	}
	msg = append(msg, make([]byte, wire.Padded(opaque)-opaque)...)
	for i := range tail {
		msg = append(msg, 0xc0+byte(i%32))
	}
	return msg, position
}

// segments makes a chunk of some octets, cut at some places, each part with a handle of its own.
func (c client) segments(position int, b []byte, cuts ...int) (all []wire.ReadSegment) {
	from := 0
	for _, to := range append(cuts, len(b)) {
		handle := uint32(len(c) + 1)
		c[handle] = b[from:to]
		all = append(all, wire.ReadSegment{Position: uint32(position), Segment: wire.Segment{Handle: handle, Length: uint32(to - from)}})
		from = to
	}
	return all
}

// put carries out a plan.
func (c client) put(t testing.TB, p *Call, inline []byte) ([]byte, error) {
	t.Helper()
	msg := make([]byte, p.Len)
	for i := range msg {
		msg[i] = 0xee // memory that was used before
	}
	for _, s := range p.Copies {
		copy(msg[s.At:s.At+s.Len], inline[s.From:])
	}
	for _, r := range p.Reads {
		require.NotZero(t, r.Len)
		require.Equal(t, r.Len, copy(msg[r.At:r.At+r.Len], c[r.Handle][r.Offset:]))
	}
	return msg, p.Finish(msg)
}

// gathers checks that a header and the inline octets form a message.
func (c client) gathers(t testing.TB, h *wire.Header, inline, want []byte, what string) {
	t.Helper()
	var p Call
	for range 2 {
		require.NoError(t, p.Make(h, inline, len(want)), what)
		got, err := c.put(t, &p, inline)
		require.NoError(t, err, what)
		require.Equal(t, want, got, what)
	}
	require.ErrorIs(t, p.Make(h, inline, len(want)-1), ErrChunk, "%s: one octet more than the limit", what)
}
