package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/captures"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// TestRPR_22_WhatIsInline: a call is inline if it fits; otherwise its opaque goes by a chunk, or else all of it.
func TestRPR_22_WhatIsInline(t *testing.T) {
	const send, receive = 1024, 2048
	for _, c := range []struct {
		name  string
		shape Shape
		want  Request
	}{
		{"nothing", Shape{Head: 40}, Request{}},
		{"it just fits", Shape{Head: send - wire.MinLen}, Request{}},
		{"one word more", Shape{Head: send - wire.MinLen + 4}, Request{Whole: true}},
		{"an opaque that fits with its pad", Shape{Head: 44, Data: send - wire.MinLen - 44 - 8 - 1, Tail: 8}, Request{}},
		{"an opaque that does not", Shape{Head: 44, Data: send - wire.MinLen - 44 - 8 + 1, Tail: 8}, Request{Data: true}},
		{"a rest that fits", Shape{Head: send - wire.MinLen - wire.ReadLen - 8, Data: 5000, Tail: 8}, Request{Data: true}},
		{"a rest that does not", Shape{Head: send - wire.MinLen - wire.ReadLen - 4, Data: 5000, Tail: 8}, Request{Whole: true}},
		{"a short result", Shape{Head: 40, Result: 1, Reply: 100}, Request{Result: true}},
		{"a reply that just fits", Shape{Head: 40, Reply: receive - wire.MinLen}, Request{}},
		{"one word more", Shape{Head: 40, Reply: receive - wire.MinLen + 4}, Request{Reply: true}},
		{"a reply that fits with the Write list", Shape{Head: 40, Result: 9, Reply: receive - wire.MinLen - wire.WriteLen}, Request{Result: true}},
		{"one that does not", Shape{Head: 40, Result: 9, Reply: receive - wire.MinLen - wire.WriteLen + 4}, Request{Result: true, Reply: true}},
		{"chunks that take space of the call", Shape{Head: send - wire.MinLen - wire.WriteLen - wire.ReplyLen, Result: 9, Reply: receive}, Request{Result: true, Reply: true}},
		{"one word more", Shape{Head: send - wire.MinLen - wire.WriteLen - wire.ReplyLen + 4, Result: 9, Reply: receive}, Request{Whole: true, Result: true, Reply: true}},
	} {
		require.Equal(t, c.want, MakeRequest(c.shape, send, receive), "%s: %+v", c.name, c.shape)
	}
}

// TestRPR_22_GoldenAnswers: the replies of the captures, to the calls of Linux.
func TestRPR_22_GoldenAnswers(t *testing.T) {
	all := captures.Headers(t)
	for _, c := range []struct {
		call, reply string
		want        Answer
	}{
		{"READ call of 12288 octets", "READ reply by the Write chunk: 10001 octets", Answer{Result: 10001}},
		{"READ call of 7003 octets: a Write chunk with a pad segment", "READ reply: the pad segment was not written", Answer{Result: 7003}},
		{"SYMLINK call with thresholds of 1024: a Read chunk at position 128", "SYMLINK reply", Answer{}},
		{"READDIRPLUS call with thresholds of 1024", "READDIRPLUS reply by the Reply chunk: NOMSG", Answer{Chunk: true, Message: 124 + 2564}},
	} {
		var call, reply wire.Header
		_, err := call.Parse(all[c.call])
		require.NoError(t, err)
		n, err := reply.Parse(all[c.reply])
		require.NoError(t, err)
		a, err := CheckAnswer(&call, &reply, len(all[c.reply])-n)
		require.NoError(t, err)
		require.Equal(t, c.want, a)
	}
}

// TestRPR_22_AnswersThatDoNotFit: octets that a server claims to have written must be within the memory of the call, and in order.
func TestRPR_22_AnswersThatDoNotFit(t *testing.T) {
	segments := func(lengths ...uint32) (c wire.Chunk) {
		for i, n := range lengths {
			c = append(c, wire.Segment{Handle: 5, Offset: uint64(i) << 20, Length: n})
		}
		return c
	}
	other := func(change func(s *wire.Segment)) wire.Chunk {
		c := segments(100, 50)
		change(&c[0])
		return c
	}
	call := &wire.Header{Writes: []wire.Chunk{segments(100, 50)}, Reply: segments(200), HasReply: true}
	for name, c := range map[string]struct {
		reply  wire.Header
		inline int
		want   Answer
		bad    bool
	}{
		"inline":                      {reply: wire.Header{}, inline: 24},
		"both":                        {reply: wire.Header{Proc: wire.NoMsg, Writes: []wire.Chunk{segments(100, 7)}, Reply: segments(24), HasReply: true}, want: Answer{Result: 107, Chunk: true, Message: 24}},
		"a Reply chunk not used":      {reply: wire.Header{Reply: segments(0), HasReply: true}, inline: 24},
		"a hole":                      {reply: wire.Header{Writes: []wire.Chunk{segments(99, 7)}}, inline: 24, bad: true},
		"too much":                    {reply: wire.Header{Writes: []wire.Chunk{segments(100, 51)}}, inline: 24, bad: true},
		"another handle":              {reply: wire.Header{Writes: []wire.Chunk{other(func(s *wire.Segment) { s.Handle++ })}}, inline: 24, bad: true},
		"another offset":              {reply: wire.Header{Writes: []wire.Chunk{other(func(s *wire.Segment) { s.Offset++ })}}, inline: 24, bad: true},
		"a chunk more":                {reply: wire.Header{Writes: []wire.Chunk{segments(100, 50), segments(1)}}, inline: 24, bad: true},
		"a Read list":                 {reply: wire.Header{Reads: make([]wire.ReadSegment, 1)}, inline: 24, bad: true},
		"a segment less":              {reply: wire.Header{Writes: []wire.Chunk{segments(100)}}, inline: 24, bad: true},
		"too much of the reply":       {reply: wire.Header{Proc: wire.NoMsg, Reply: segments(201), HasReply: true}, bad: true},
		"another Reply chunk":         {reply: wire.Header{Reply: segments(0, 0), HasReply: true}, inline: 24, bad: true},
		"inline and a Reply chunk":    {reply: wire.Header{Reply: segments(24), HasReply: true}, inline: 24, bad: true},
		"NOMSG and inline":            {reply: wire.Header{Proc: wire.NoMsg, Reply: segments(24), HasReply: true}, inline: 24, bad: true},
		"NOMSG without a Reply chunk": {reply: wire.Header{Proc: wire.NoMsg}, bad: true},
		"NOMSG of no octets":          {reply: wire.Header{Proc: wire.NoMsg, Reply: segments(0), HasReply: true}, bad: true},
		"nothing":                     {reply: wire.Header{}, bad: true},
		"another procedure":           {reply: wire.Header{Proc: wire.Done}, inline: 24, bad: true},
	} {
		a, err := CheckAnswer(call, &c.reply, c.inline)
		if c.bad {
			require.ErrorIs(t, err, ErrChunk, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, a, name)
	}
}

// FuzzAnswer: memory that counts as written is memory that the call has named, and the message is in one place.
func FuzzAnswer(f *testing.F) {
	for _, b := range captures.Headers(f) {
		f.Add(b, b)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var call, reply wire.Header
		if _, err := call.Parse(first); err != nil {
			return
		}
		n, err := reply.Parse(second)
		if err != nil {
			return
		}
		a, err := CheckAnswer(&call, &reply, len(second)-n)
		if err != nil {
			return
		}
		space := func(chunks ...wire.Chunk) (sum int) {
			for _, c := range chunks {
				for _, s := range c {
					sum += int(s.Length)
				}
			}
			return sum
		}
		require.LessOrEqual(t, a.Result, space(call.Writes...))
		require.LessOrEqual(t, a.Message, space(call.Reply))
		require.Equal(t, a.Chunk, len(second) == n, "inline, or in the Reply chunk")
		require.Equal(t, a.Chunk, a.Message > 0)
	})
}
