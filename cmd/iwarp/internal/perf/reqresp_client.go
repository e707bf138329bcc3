package perf

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// A requestDriver is the client of the reqresp baseline.
type requestDriver struct {
	w    workload
	ends []*requester
}

func dialReqResp(addr string, w workload) (driver, error) {
	d := &requestDriver{w: w}
	for range w.Conns {
		c, err := peer.Dial(addr, w.CC)
		if err != nil {
			_ = d.close() // the first error counts
			return nil, err
		}
		d.ends = append(d.ends, newRequester(c, &d.w))
	}
	return d, nil
}

func (d *requestDriver) run(n int, times []int64) ([]int64, error) {
	if d.w.Latency {
		return d.ends[0].timed(n, times)
	}
	for _, e := range d.ends {
		e.n = n
	}
	return times, each(d.ends, (*requester).stream)
}

func (d *requestDriver) close() error {
	return each(d.ends, func(e *requester) error { return e.c.Close() })
}

// A requester is the client's end of a connection of the reqresp baseline.
type requester struct {
	c        *net.TCPConn
	r        *bufio.Reader
	w        *workload
	sinks    [][]byte // one for each slot
	requests []byte   // one for each slot, then space to post a depth of them from the last one on
	n        int      // operations of the next run
}

func newRequester(c *net.TCPConn, w *workload) *requester {
	e := &requester{c: c, r: bufio.NewReaderSize(c, fetchBuffer), w: w}
	dst := make([]byte, w.sinkLen())
	for i := range w.slots() {
		q := fetchRequest{offset: uint64(w.stretch(i)), length: uint32(w.Size)}
		e.requests = q.append(e.requests)
		e.sinks = append(e.sinks, dst[w.sink(i):][:w.Size])
	}
	e.requests = append(e.requests, e.requests[:w.Depth*fetchLen]...)
	return e
}

// stream keeps as many requests outstanding as the depth allows, until n are answered. It
// posts as many requests as it has just received answers.
func (e *requester) stream() error {
	free := e.w.Depth
	for posted, done := 0, 0; done < e.n; done += free {
		k := min(free, e.n-posted)
		if err := e.post(posted, k); err != nil {
			return err
		}
		posted += k
		var err error
		if free, err = e.take(done, posted-done); err != nil {
			return err
		}
	}
	return nil
}

// post writes k requests, beginning with that of operation i.
func (e *requester) post(i, k int) error {
	if k == 0 {
		return nil
	}
	at := i % len(e.sinks) * fetchLen
	_, err := e.c.Write(e.requests[at : at+k*fetchLen])
	return err
}

// take waits for the answer of operation i, and also takes other answers that have come
// completely. It returns how many of the outstanding requests it has finished.
func (e *requester) take(i, underWay int) (n int, err error) {
	for n == 0 || n < underWay && e.r.Buffered() >= fetchLen+e.w.Size {
		if err := e.answer(i + n); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// answer reads the answer of operation i into its sink.
func (e *requester) answer(i int) error {
	header, err := e.r.Peek(fetchLen)
	if err != nil {
		return err
	}
	slot := i % len(e.sinks)
	if q := e.requests[slot*fetchLen:][:fetchLen]; !bytes.Equal(header, q) {
		return fmt.Errorf("answer to %x, want one to %x", header, q)
	}
	if _, err := e.r.Discard(fetchLen); err != nil {
		return err
	}
	_, err = io.ReadFull(e.r, e.sinks[slot])
	return err
}

// timed times n requests and their answers, one after the other.
func (e *requester) timed(n int, times []int64) ([]int64, error) {
	return stats.Times(n, times, func(i int) error {
		if err := e.post(i, 1); err != nil {
			return err
		}
		return e.answer(i)
	})
}
