package perf

import (
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A tcpEnd is either end of a connection of the baselines tcp and tls: it does what the best plain Go
// program would do with blocking calls and without copying.
type tcpEnd struct {
	c       net.Conn
	out, in []byte // memory of data to send, and of data read; data moves through all of it
	order   order  // the client's next
	scratch [max(orderLen, fetchLen)]byte
}

func newTCPEnd(c net.Conn, w *workload) *tcpEnd {
	n := max(w.Region, w.Size, w.Chunk, maxChunk)
	return &tcpEnd{c: c, out: peer.SourceOf(n), in: make([]byte, max(n, w.sinkLen()))}
}

// serve does the server's half of whatever the client orders, until the end of the
// connection.
func (e *tcpEnd) serve() error {
	for {
		var o order
		if err := o.read(e.c, e.scratch[:]); err != nil {
			return err
		}
		if err := e.obey(&o); err != nil {
			return err
		}
	}
}

func (e *tcpEnd) obey(o *order) error {
	if room := min(len(e.in), len(e.out)); int(o.size) > room { // in may be the longer one: see sinkLen
		return fmt.Errorf("messages of %d octets, the buffer has %d", o.size, room)
	}
	octets := int(o.count) * int(o.size)
	switch o.mode {
	case modeSink:
		if err := e.sink(octets, int(o.chunk)); err != nil {
			return err
		}
		_, err := e.c.Write(e.out[:1])
		return err
	case modeSource:
		return e.source(octets, int(o.chunk))
	case modeDuplex:
		return e.both(octets, int(o.chunk))
	case modePingPong:
		return e.echo(int(o.count), e.in[:o.size], e.out[:o.size])
	case modeFetch:
		return e.echo(int(o.count), e.scratch[:fetchLen], e.out[:o.size])
	}
	return net.ErrClosed
}

// source writes octets, chunk at a time.
func (e *tcpEnd) source(octets, chunk int) error {
	for at := 0; octets > 0; {
		n := min(chunk, octets, len(e.out)-at)
		if _, err := e.c.Write(e.out[at : at+n]); err != nil {
			return err
		}
		octets -= n
		if at += n; at == len(e.out) {
			at = 0
		}
	}
	return nil
}

// sink reads octets, chunk at a time but never in small pieces.
func (e *tcpEnd) sink(octets, chunk int) error {
	chunk = max(chunk, minChunk)
	for at := 0; octets > 0; {
		n, err := e.c.Read(e.in[at : at+min(chunk, octets, len(e.in)-at)])
		if err != nil {
			return err
		}
		octets -= n
		if at += n; at == len(e.in) {
			at = 0
		}
	}
	return nil
}

// both streams in both directions.
func (e *tcpEnd) both(octets, chunk int) error {
	sent := make(chan error, 1)
	go func() { sent <- e.source(octets, chunk) }()
	err := e.sink(octets, chunk)
	if serr := <-sent; err == nil {
		err = serr
	}
	return err
}

// echo answers n messages.
func (e *tcpEnd) echo(n int, in, out []byte) error {
	for range n {
		if _, err := io.ReadFull(e.c, in); err != nil {
			return err
		}
		if _, err := e.c.Write(out); err != nil {
			return err
		}
	}
	return nil
}
