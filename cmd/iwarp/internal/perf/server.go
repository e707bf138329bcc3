package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/exporter"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/internal/sockerr"
)

// A server prepares the services that its clients request.
type server struct {
	host string
	// meter belongs to the server, so that one client's query does not count as
	// another client's work.
	mu    sync.Mutex
	meter peer.Meter
}

// serve takes clients until ctx ends; or, with once, until the first of them leaves. If a connection cannot be taken, for example because
// the process has no descriptor left, the others go on.
func (s *server) serve(ctx context.Context, l net.Listener, once bool) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // Close ends Accept
	defer stop()
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		c, err := sockerr.Accept(ctx, l)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil // interrupted, which is how it ends
		case err != nil:
			return err
		}
		if once {
			return s.client(ctx, c)
		}
		clients.Go(func() { _ = s.client(ctx, c) })
	}
}

// client serves one control connection.
func (s *server) client(ctx context.Context, c net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // Close ends the reads
	defer stop()
	defer c.Close() //nolint:errcheck // nothing is lost with it
	k := &session{server: s, services: make(map[int]service)}
	defer k.close()
	var buf [peer.UsageLen]byte
	for {
		if _, err := io.ReadFull(c, buf[:4]); err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		n := binary.BigEndian.Uint32(buf[:])
		if n == 0 {
			s.usage().Put(&buf)
			if _, err := c.Write(buf[:]); err != nil {
				return err
			}
			continue
		}
		var q request
		if err := readBody(c, n, &q); err != nil {
			return err
		}
		a, err := k.do(&q)
		if err != nil {
			a.Error = err.Error()
		}
		if err := writeFrame(c, a); err != nil {
			return err
		}
	}
}

func (s *server) usage() peer.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meter.Read()
}

// A session holds what one client has requested.
type session struct {
	server   *server
	services map[int]service
	last     int

	scraper   *exporter.Scraper // nil: nothing is scraped
	unscraped func() (n int, err error)
}

func (k *session) do(q *request) (a reply, err error) {
	switch {
	case q.Open != nil:
		return k.open(*q.Open)
	case q.Memory:
		return reply{Memory: peer.KeptMemory()}, nil
	case q.Scrape != nil:
		a.Scrapes, err = k.scrape(q.Scrape)
		return a, err
	case q.Run != nil:
		v, ok := k.services[q.Run.Service]
		if !ok {
			return a, errNoService
		}
		return a, v.run(q.Run.N)
	}
	v, ok := k.services[q.Close]
	if !ok {
		return a, errNoService
	}
	delete(k.services, q.Close)
	return a, v.close()
}

var errNoService = errors.New("no such service")

func (k *session) open(w workload) (reply, error) {
	if err := w.check(); err != nil {
		return reply{}, err
	}
	kind, err := kindOf(w.Kind)
	if err != nil {
		return reply{}, err
	}
	v, err := kind.serve(k.server.host, w)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", w.Kind, err)
	}
	k.last++
	k.services[k.last] = v
	return reply{Service: k.last, Port: v.port()}, nil
}

func (k *session) close() {
	_, _ = k.unscrape() // the client has left
	for _, v := range k.services {
		_ = v.close() // the client has left
	}
}
