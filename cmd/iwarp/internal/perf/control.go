package perf

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// The control connection carries frames: a length of four octets, big endian, and
// JSON of that length. A frame without octets requests the usage of the server, which comes
// back in a fixed form: the request must cost almost nothing and allocate nothing.

const maxFrame = 1 << 16

// A request is a request of the client. Exactly one field is set.
type request struct {
	Open   *workload `json:"open,omitempty"`   // prepare a service
	Run    *runOrder `json:"run,omitempty"`    // the server's half of duplex operations
	Close  int       `json:"close,omitempty"`  // end the service of this number
	Memory bool      `json:"memory,omitempty"` // collect garbage, then report the memory

	Scrape *scrapeOrder `json:"scrape,omitempty"`
}

type runOrder struct {
	Service int `json:"service"`
	N       int `json:"n"`
}

// A scrapeOrder begins or ends scraping the metrics of the server at intervals.
type scrapeOrder struct {
	Every time.Duration `json:"every"` // 0: end it
}

type reply struct {
	Error   string      `json:"error,omitempty"`
	Service int         `json:"service,omitempty"` // its number, from 1
	Port    int         `json:"port,omitempty"`
	Memory  peer.Memory `json:"memory,omitzero"`
	Scrapes int         `json:"scrapes,omitempty"` // how many there were
}

func writeFrame(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

// readBody reads the rest of a frame of n octets.
func readBody(r io.Reader, n uint32, v any) error {
	if n > maxFrame {
		return fmt.Errorf("%w: the peer is no iwarp perf, or another version of it: it sent a frame of %d octets", cli.ErrUnconnected, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// A remote is the client's end of the control connection. It serves one caller at a
// time.
type remote struct {
	c   net.Conn
	buf [peer.UsageLen]byte
}

// dialServer opens the control connection to a server.
func dialServer(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: peer.Timeout}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := (&remote{c: c}).greet(ctx); err != nil {
		_ = c.Close() // nothing is lost with it
		return nil, err
	}
	return c, nil
}

// greet makes sure that the peer is a server, before requests that may take long: any other program that accepts TCP may send
// nothing. Any request with an answer would do.
func (r *remote) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, peer.Timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = r.c.Close() }) // Close ends the read
	_, err := r.do(request{Memory: true})
	if !stop() {
		return fmt.Errorf("control connection: %w", ctx.Err())
	}
	return err
}

// do sends a request and waits for the answer.
func (r *remote) do(q request) (reply, error) {
	var a reply
	if err := writeFrame(r.c, q); err != nil {
		return a, err
	}
	if _, err := io.ReadFull(r.c, r.buf[:4]); err != nil {
		return a, cli.OfConnection(err)
	}
	if err := readBody(r.c, binary.BigEndian.Uint32(r.buf[:4]), &a); err != nil {
		return a, cli.OfConnection(err)
	}
	if a.Error != "" {
		return a, errors.New("server: " + a.Error)
	}
	return a, nil
}

// usage requests the usage of the server.
func (r *remote) usage() (u peer.Usage, err error) {
	clear(r.buf[:4])
	if _, err := r.c.Write(r.buf[:4]); err != nil {
		return u, err
	}
	if _, err := io.ReadFull(r.c, r.buf[:]); err != nil {
		return u, cli.OfConnection(err)
	}
	return peer.UsageOf(&r.buf), nil
}

// addr returns the address of a service at port.
func (r *remote) addr(port int) string {
	host, _, _ := net.SplitHostPort(r.c.RemoteAddr().String()) // a TCP address has both
	return net.JoinHostPort(host, fmt.Sprint(port))
}
