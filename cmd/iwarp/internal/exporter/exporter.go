// Package exporter serves the live page and the metrics of the RNICs that a command opens and closes.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rebinding"
	"github.com/goiwarp/iwarp/metrics"
	"github.com/goiwarp/iwarp/monitor"
)

// A Set holds the RNICs that are open now. It implements prometheus.Collector.
type Set struct {
	page *monitor.Handler

	mu    sync.Mutex
	rnics []*iwarp.RNIC
}

// NewSet returns an empty Set.
func NewSet() *Set { return &Set{page: monitor.NewHandler()} }

// Add adds an RNIC.
func (s *Set) Add(r *iwarp.RNIC) {
	s.page.Add(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rnics = append(s.rnics, r)
}

// Close closes an RNIC, and removes it.
func (s *Set) Close(r *iwarp.RNIC) error {
	s.page.Remove(r)
	s.mu.Lock()
	s.rnics = slices.DeleteFunc(s.rnics, func(x *iwarp.RNIC) bool { return x == r })
	s.mu.Unlock()
	return r.Close()
}

// Describe implements prometheus.Collector.
func (s *Set) Describe(to chan<- *prometheus.Desc) { metrics.NewCollector().Describe(to) }

// Collect implements prometheus.Collector.
func (s *Set) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	rnics := slices.Clone(s.rnics)
	s.mu.Unlock()
	metrics.NewCollector(rnics...).Collect(to)
}

// A Server serves a Set.
type Server struct {
	server *http.Server
	url    string
	ended  chan error
}

// Serve serves the live page of package monitor, and /metrics, at addr. An omitted host means the loopback. Both refuse
// requests that the name of another site has directed here.
func (s *Set) Serve(ctx context.Context, addr string) (*Server, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(s); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.page)
	scraped := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		if !rebinding.Refuse(w, r) {
			scraped.ServeHTTP(w, r)
		}
	})
	e := &Server{server: bounded(mux), url: "http://" + l.Addr().String() + "/", ended: make(chan error, 1)}
	go func() { e.ended <- e.server.Serve(l) }()
	return e, nil
}

// bounded returns a server of h that closes idle connections.
func bounded(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
}

// URL returns the URL of the page.
func (e *Server) URL() string { return e.url }

// Close ends the Server, but not the RNICs.
func (e *Server) Close() error {
	err := e.server.Close()
	if ended := <-e.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// Next returns the address with the next port, for a second process; empty if addr is.
func Next(addr string) (string, error) {
	if addr == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || n == 1<<16-1 {
		return "", fmt.Errorf("%q is no port with one after it", port)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n+1, 10)), nil
}
