package perf

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

func TestFetchRequest(t *testing.T) {
	b := fetchRequest{offset: 0x0102, length: 0x0304}.append(nil)
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4}, b, "the octets on the wire")
	var q fetchRequest
	require.NoError(t, q.get(b, 0x0406))
	require.Equal(t, fetchRequest{0x0102, 0x0304}, q)
	require.Error(t, q.get(b, 0x0405), "beyond the end")
	require.Error(t, q.get(fetchRequest{offset: 1<<64 - 1, length: 2}.append(nil), 8), "the sum of both would wrap")
}

// dialedRequests returns both ends of the baseline, in this process.
func dialedRequests(t *testing.T, w workload) *requestDriver {
	t.Helper()
	w.Kind = "reqresp"
	w = w.filled()
	require.NoError(t, w.check())
	s, err := serveReqResp("127.0.0.1", w)
	require.NoError(t, err)
	d, err := dialReqResp(net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port())), w)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.close())
		require.NoError(t, s.close())
	})
	return d.(*requestDriver)
}

func TestRequestsFetchWhatTheyAskFor(t *testing.T) {
	for _, c := range []struct {
		name string
		w    workload
		n    int // operations of a run
	}{
		{"one at a time", workload{Size: 100, Region: 1000, Depth: 1}, 25},
		{"more stretches than requests under way", workload{Size: 100, Region: 1000, Depth: 4}, 25},
		{"fewer", workload{Size: 100, Region: 300, Depth: 7}, 25},
		{"one sink", workload{Size: 100, Depth: 7, Shared: true}, 25},
		{"answers as large as the buffer", workload{Size: fetchBuffer, Region: 3*fetchBuffer + 1, Depth: 2}, 25},
		{"larger than the buffer", workload{Size: 3*fetchBuffer + 1, Depth: 3}, 25},
		{"more answers than one call writes, on several connections", workload{Size: 9, Region: 9000, Depth: 4 * maxAnswers, Conns: 3}, 5000},
		{"as many requests as there may be", workload{Size: 64, Depth: maxRequests}, 2 * maxRequests},
		{"fewer operations than the depth", workload{Size: 100, Region: 100_000, Depth: 500}, 250},
		{"timed", workload{Size: 100, Region: 1000, Latency: true}, 25},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.w.Op = opRead
			d := dialedRequests(t, c.w)
			for range 2 { // the second run begins as the first does
				times, err := d.run(c.n, nil)
				require.NoError(t, err)
				require.Len(t, times, map[bool]int{true: c.n}[c.w.Latency])
			}
			src := peer.SourceOf(d.w.Region)
			for _, e := range d.ends {
				require.Len(t, e.sinks, d.w.slots())
				for i, sink := range e.sinks[:min(c.n, d.w.slots())] {
					at := d.w.stretch(i)
					require.True(t, bytes.Equal(src[at:at+d.w.Size], sink), "operation %d", i)
				}
			}
		})
	}
}

func TestResponderRefusesWhatItDoesNotHave(t *testing.T) {
	d := dialedRequests(t, workload{Op: opRead, Size: 64, Depth: 1})
	c := d.ends[0].c
	_, err := c.Write(fetchRequest{offset: 1, length: 64}.append(nil))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the connection ends")
}

func TestRequesterRefusesTheAnswerToAnother(t *testing.T) {
	w := workload{Op: opRead, Size: 4, Region: 8, Depth: 2}
	e := newRequester(nil, &w)
	answer := append(fetchRequest{offset: 4, length: 4}.append(nil), "data"...)
	e.r = bufio.NewReader(bytes.NewReader(answer))
	require.ErrorContains(t, e.answer(0), "answer to")
	require.NoError(t, e.answer(1))
	require.Equal(t, "data", string(e.sinks[1]))
}

func TestRequestsOnlyRead(t *testing.T) {
	for _, w := range []workload{
		{Op: opWrite, Size: 64},
		{Op: opRead, Size: 64, Duplex: true},
		{Op: opRead, Size: 64, Depth: maxRequests + 1},
	} {
		w.Kind = "reqresp"
		w = w.filled()
		require.ErrorContains(t, w.check(), "reqresp", "%+v", w)
	}
}
