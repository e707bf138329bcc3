package rdmap

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// FuzzSegments is a peer that sends anything: each input is cut into segments by its
// own octets, which come out of order if there is a window. Nothing may panic, nothing may be written or read outside of what the
// peer was granted, and every request must complete exactly once.
func FuzzSegments(f *testing.F) {
	join := func(segments ...[]byte) (b []byte) {
		for _, g := range segments {
			b = append(append(b, byte(len(g))), g...)
		}
		return b
	}
	f.Add(join(tagged(OpWrite, true, target, "hello")), uint8(0))
	f.Add(join(tagged(OpReadResponse, true, RemoteAddr{}, octets(8)), untagged(OpSend, QNSend, 1, "hello")), uint8(0))
	f.Add(join(readRequestOf(1, ReadRequest{Size: 8}), readRequestOf(2, ReadRequest{Sink: target, Size: 1 << 20})), uint8(0))
	f.Add(join(terminateOf(fullTerminate)), uint8(0))
	f.Add(join(untagged(opEcho, QNRequest, 1, "x"), untagged(opEchoed, QNResponse, 1, "y")), uint8(0))
	f.Add(join(untagged(OpSend, QNSend, 2, "second"), untagged(OpSend, QNSend, 1, "first")), uint8(3))
	f.Add(join(immediate(1, "12345678"), untagged(OpSend, QNSend, 2, "x")), uint8(2))
	f.Add(join(atomicRequestOf(1, add(RemoteAddr{0, 0x1008}, 1)), atomicRequestOf(2, swapIf(RemoteAddr{0, 0x1008}, 1, 2))), uint8(0))
	f.Add(join(tagged(OpReadResponse, true, RemoteAddr{}, octets(8)), untagged(opEchoed, QNResponse, 1, "y"), tagged(OpReadResponse, true, RemoteAddr{}, ""),
		atomicResponseOf(2, 4, 9)), uint8(0))
	f.Fuzz(fuzzSegments)
}

func fuzzSegments(t *testing.T, input []byte, window uint8) {
	e := newEcho()
	c := converse(t, func(cfg *Config) { cfg.Extensions, cfg.Window = []*Extension{&e.Extension}, int(window%8) })
	shared, _ := c.region(64, nil)
	_, secret := c.region(64, func(o *stag.Options) { o.Scope = carol })
	copy(secret, bytes.Repeat([]byte("secret! "), 8))
	before := bytes.Clone(secret)
	c.receive(16)
	c.receive(16)
	c.post(readOf(1, target, span(shared, 0, 8)), sendOf(2, "x"), e.request(3, "y"), readOf(4, target), atomicOf(5, add(target, 1)))
	require.NoError(t, c.flush())

	for seq := uint64(0); len(input) > 1; seq++ {
		n := min(int(input[0]), len(input)-1)
		segment := aim(bytes.Clone(input[1:1+n]), shared.STag())
		input = input[1+n:]
		order := seq
		if window > 0 {
			order ^= 1 // each pair the other way round
		}
		if err := c.take(order, segment); err != nil {
			c.s.Terminate(err)
		}
		for len(e.open) > 0 {
			e.reply(0)
		}
		if err := c.flush(); err != nil {
			c.s.Terminate(err)
		}
	}
	_ = c.flush()
	c.s.End()
	require.Len(t, c.done, 5, "every request has completed")
	require.Equal(t, before, secret, "nothing was written where it was not granted")
	for _, g := range c.llp.sent {
		require.NotContains(t, string(g), "secret!", "nor read")
	}
}

// aim lets the fuzzer name the region without guessing: an STag field of zero in a
// tagged header becomes the region's STag, and so does the source of a Read or the
// target of an Atomic.
func aim(segment []byte, st stag.STag) []byte {
	put := func(at int) {
		if len(segment) >= at+4 && bytes.Equal(segment[at:at+4], make([]byte, 4)) {
			copy(segment[at:], RemoteAddr{STag: st}.append(nil)[:4])
		}
	}
	if len(segment) > 1 && segment[0]&0x80 != 0 {
		put(2)
	} else if len(segment) > 1 && opcodeOf(segment[1]) == OpReadRequest {
		put(18 + 16)
	} else if len(segment) > 1 && opcodeOf(segment[1]) == OpAtomicRequest {
		put(18 + 8)
	}
	return segment
}
