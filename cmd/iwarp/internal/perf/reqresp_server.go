package perf

import (
	"bufio"
	"net"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

func serveReqResp(host string, w workload) (service, error) {
	return serveSockets(host, w, func(c *net.TCPConn) error { return newResponder(c, peer.SourceOf(w.Region)).serve() })
}

// maxAnswers is how many answers one call writes: it takes 1,024 buffers at most.
const maxAnswers = 512

// A responder is the server's end of a connection of the reqresp baseline.
type responder struct {
	c       *net.TCPConn
	r       *bufio.Reader
	src     []byte
	headers []byte      // of the answers that are not written yet, with space for maxAnswers
	answers net.Buffers // those answers: header, octets, header, octets
	writing net.Buffers // the same, as consumed by the call
}

func newResponder(c *net.TCPConn, src []byte) *responder {
	return &responder{
		c: c, r: bufio.NewReaderSize(c, fetchBuffer), src: src,
		headers: make([]byte, 0, maxAnswers*fetchLen),
	}
}

// serve answers requests until the end of the connection. It writes the answers when it has
// no further request.
func (e *responder) serve() error {
	for {
		if err := e.answer(); err != nil {
			return err
		}
		if e.r.Buffered() >= fetchLen && len(e.headers) < cap(e.headers) {
			continue
		}
		e.writing = e.answers
		if _, err := e.writing.WriteTo(e.c); err != nil {
			return err
		}
		e.headers, e.answers = e.headers[:0], e.answers[:0]
	}
}

// answer reads a request and adds its answer to the answers that will be written.
func (e *responder) answer() error {
	b, err := e.r.Peek(fetchLen)
	if err != nil {
		return err
	}
	var q fetchRequest
	if err := q.get(b, len(e.src)); err != nil {
		return err
	}
	at := len(e.headers)
	e.headers = append(e.headers, b...)
	e.answers = append(e.answers, e.headers[at:], e.src[q.offset:q.offset+uint64(q.length)])
	_, err = e.r.Discard(fetchLen)
	return err
}
