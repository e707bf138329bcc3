package exporter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A Scraper requests the metrics of a Set by HTTP over the loopback, as Prometheus does, to measure the cost. One
// goroutine uses it.
type Scraper struct {
	server *Server
	client http.Client
}

// NewScraper serves s at a port of its own.
func (s *Set) NewScraper(ctx context.Context) (*Scraper, error) {
	server, err := s.Serve(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Scraper{server: server, client: http.Client{Transport: new(http.Transport)}}, nil
}

// Scrape scrapes once, and returns how long that took.
func (x *Scraper) Scrape(ctx context.Context) (took time.Duration, err error) {
	began := time.Now()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, x.server.URL()+"metrics", nil)
	if err != nil {
		return 0, err
	}
	a, err := x.client.Do(q)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, a.Body)
	_ = a.Body.Close() // it was read
	if err == nil && (a.StatusCode != http.StatusOK || n == 0) {
		err = fmt.Errorf("scrape: status %d with %d octets", a.StatusCode, n)
	}
	return time.Since(began), err
}

// Every begins to scrape at intervals, the first time after half an interval. stop ends that, and returns how many scrapes there were.
func (x *Scraper) Every(interval time.Duration) (stop func() (n int, err error)) {
	ctx, cancel := context.WithCancel(context.Background())
	type result struct {
		n   int
		err error
	}
	ended := make(chan result, 1)
	go func() {
		var r result
		for wait := time.NewTimer(interval / 2); ; r.n++ {
			select {
			case <-ctx.Done():
				ended <- r
				return
			case <-wait.C:
			}
			wait.Reset(interval)
			if _, err := x.Scrape(ctx); err != nil {
				if ctx.Err() == nil { // else it was stopped
					r.err = err
				}
				ended <- r
				return
			}
		}
	}()
	return func() (int, error) {
		cancel()
		r := <-ended
		return r.n, r.err
	}
}

// Close ends the server.
func (x *Scraper) Close() error {
	x.client.CloseIdleConnections()
	return x.server.Close()
}
