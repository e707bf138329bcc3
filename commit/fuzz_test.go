package commit

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
)

// FuzzResponder serves Commits of a peer that may ask for anything. Whatever comes,
// nothing is flushed and nothing stored but what was granted, there are no more tasks
// than the IRD, every answer belongs to a request, and in the end nothing stays pinned.
//
// The input is requests, each with an octet in front: its lower seven bits say how long it is,
// and its highest bit that waiting work is done first. An STag of zero stands for
// the STag of the granted region, or, with a TO from 2^63 on, of a region that is not granted.
func FuzzResponder(f *testing.F) {
	program := func(requests ...Request) (b []byte) {
		for _, r := range requests {
			p := r.Append(nil)
			b = append(append(b, 0x80|byte(len(p))), p...)
		}
		return b
	}
	good, other := Region{0, 0x1000, 8}, Region{0, 1<<63 + 0x1000, 8}
	f.Add(false, program(ask(1, good), ask(2, good, good).then(0, 0x1008, 42)))
	f.Add(true, program(ask(1, good, good).then(0, 0x1008, 42), ask(2, good)))
	f.Add(false, program(ask(1, good, other)))
	f.Add(false, program(ask(1, good).then(0, 1<<63+0x1000, 42)))
	f.Add(false, program(ask(1, Region{0, 0x1000, 65})))
	f.Add(false, program(ask(1, Region{0, math.MaxUint64, 2}, Region{})))
	f.Add(false, []byte{20, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(fuzzResponder)
}

func fuzzResponder(t *testing.T, fails bool, input []byte) {
	c := converse(t, nil)
	granted, mem := c.region(nil)
	refused, secret := c.region(func(o *stag.Options) { o.Scope, o.BaseTO = bob, 1<<63+0x1000 })
	if fails {
		c.media.fail = map[int64]error{8: syscall.EIO}
	}
	var asked ddp.MSN
	for len(input) > 0 {
		n := min(int(input[0]&0x7f), len(input)-1)
		if input[0]&0x80 != 0 {
			c.run()
			_ = c.flush()
		}
		asked++
		if err := c.send(untagged(0x4c, 1, asked, string(aim(bytes.Clone(input[1:1+n]), granted, refused)))); err != nil {
			c.s.Terminate(err)
		}
		input = input[1+n:]
		require.LessOrEqual(t, len(c.tasks), 4, "as many as the IRD")
	}
	c.run()
	if err := c.flush(); err != nil {
		c.s.Terminate(err)
	}
	c.s.End()
	for _, r := range c.media.flushed {
		require.True(t, r.Off >= 0 && r.Len > 0 && r.Off+r.Len <= int64(len(mem)), "flushed: %v", r)
	}
	require.Equal(t, make([]byte, 64), secret, "nothing was stored where it was not granted")
	answers := 0
	for _, g := range c.sent {
		if g[1] == 0x4d {
			answers++
		}
	}
	require.LessOrEqual(t, answers, int(asked))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.NoError(t, c.table.Invalidate(ctx, granted), "nothing stays pinned")
	require.NoError(t, c.table.Invalidate(ctx, refused))
}

// aim lets the fuzzer name a region without guessing.
func aim(request []byte, granted, refused *stag.Region) []byte {
	put := func(at, to int) {
		if binary.BigEndian.Uint32(request[at:]) != 0 {
			return
		}
		st := granted.STag()
		if binary.BigEndian.Uint64(request[to:]) >= 1<<63 {
			st = refused.STag()
		}
		binary.BigEndian.PutUint32(request[at:], uint32(st))
	}
	var r Request
	if r.Parse(request) != nil {
		return request
	}
	for i := range r.Regions {
		at := requestIDLen + i*regionLen
		put(at, at+8)
	}
	if r.HasFollowOn {
		at := len(request) - followOnLen
		put(at, at+4)
	}
	return request
}
