package perf

import (
	"io"
	"net"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// The sizes of one call among which the tcp baseline takes the best.
const (
	minChunk = 64 << 10
	maxChunk = 1 << 20
)

var chunks = []int{minChunk, 256 << 10, maxChunk}

// A tcpDriver is the client of the baselines tcp and tls.
type tcpDriver struct {
	w    workload
	ends []*tcpEnd
}

func dialTCP(addr string, w workload) (driver, error) {
	return dialStreams(addr, w, func(c *net.TCPConn) (net.Conn, error) { return c, nil })
}

// dialStreams makes a driver of connections to addr, each wrapped by wrap. It closes its connections if it fails.
func dialStreams(addr string, w workload, wrap func(c *net.TCPConn) (net.Conn, error)) (driver, error) {
	d := &tcpDriver{w: w}
	for range w.Conns {
		raw, err := peer.Dial(addr, w.CC)
		var c net.Conn
		if err == nil {
			c, err = wrap(raw)
		}
		if err != nil {
			_ = d.close() // the first error counts
			return nil, err
		}
		d.ends = append(d.ends, newTCPEnd(c, &w))
	}
	if w.Chunk == 0 {
		d.w.Chunk = w.Size
		if !w.Latency {
			return d, d.choose()
		}
	}
	return d, nil
}

// choose finds the best chunk: each is tried a few times.
func (d *tcpDriver) choose() error {
	const octets, turns = 128 << 20, 3
	n := max(octets/d.w.Size/d.w.Conns, 1)
	best := make([]time.Duration, len(chunks))
	for turn := range turns + 1 {
		for i, chunk := range chunks {
			d.w.Chunk = chunk
			start := time.Now()
			if _, err := d.run(n, nil); err != nil {
				return err
			}
			if t := time.Since(start); turn == 1 || turn > 1 && t < best[i] { // turn 0 warms up
				best[i] = t
			}
		}
	}
	d.w.Chunk = chunks[slices.Index(best, slices.Min(best))]
	return nil
}

func (d *tcpDriver) run(n int, times []int64) ([]int64, error) {
	o := order{chunk: uint32(d.w.Chunk), size: uint32(d.w.Size), count: uint64(n)}
	if d.w.Latency {
		return d.ends[0].converse(&o, d.w.Op == opPingPong, times)
	}
	o.mode = modeSink
	switch {
	case d.w.Duplex:
		o.mode = modeDuplex
	case d.w.fetches():
		o.mode = modeSource
	}
	for _, e := range d.ends {
		e.order = o
	}
	return times, each(d.ends, (*tcpEnd).stream)
}

// stream does the client's half of its order, which is not about latency.
func (e *tcpEnd) stream() error {
	o := &e.order
	if err := o.write(e.c, e.scratch[:]); err != nil {
		return err
	}
	octets := int(o.count) * int(o.size)
	switch o.mode {
	case modeDuplex:
		return e.both(octets, int(o.chunk))
	case modeSource:
		return e.sink(octets, int(o.chunk))
	}
	if err := e.source(octets, int(o.chunk)); err != nil {
		return err
	}
	_, err := io.ReadFull(e.c, e.in[:1])
	return err
}

// converse times messages to and fro, or requests and their answers.
func (e *tcpEnd) converse(o *order, pingpong bool, times []int64) ([]int64, error) {
	out := e.out[:fetchLen]
	o.mode = modeFetch
	if pingpong {
		out, o.mode = e.out[:o.size], modePingPong
	}
	if err := o.write(e.c, e.scratch[:]); err != nil {
		return times, err
	}
	return stats.Times(int(o.count), times, func(int) error {
		if _, err := e.c.Write(out); err != nil {
			return err
		}
		_, err := io.ReadFull(e.c, e.in[:o.size])
		return err
	})
}

func (d *tcpDriver) close() error {
	var err error
	for _, e := range d.ends {
		if cerr := e.c.Close(); err == nil {
			err = cerr
		}
	}
	return err
}
