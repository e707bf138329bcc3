package perf

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// A fetcher gets one block of the server into dst, which it fills.
type fetcher func(ctx context.Context, dst []byte) error

// A fetchDriver is the client of a baseline that answers requests: every outstanding
// operation has a worker.
type fetchDriver struct {
	w       workload
	workers []*fetchWorker // Depth of them for each connection
	release func() error
}

type fetchWorker struct {
	get fetcher
	dst []byte
	n   int // of the next run
}

func newFetchDriver(w workload, release func() error) *fetchDriver {
	return &fetchDriver{w: w, release: release}
}

// connection adds the workers of one connection.
func (d *fetchDriver) connection(get fetcher) {
	for range d.w.Depth {
		d.workers = append(d.workers, &fetchWorker{get: get, dst: make([]byte, d.w.Size)})
	}
}

func (d *fetchDriver) run(n int, times []int64) ([]int64, error) {
	if d.w.Latency {
		return d.workers[0].timed(n, times)
	}
	for i, k := range d.workers {
		k.n = n / d.w.Depth
		if i%d.w.Depth < n%d.w.Depth {
			k.n++
		}
	}
	return times, each(d.workers, (*fetchWorker).fetch)
}

func (k *fetchWorker) fetch() error {
	for range k.n {
		if err := k.get(context.Background(), k.dst); err != nil {
			return err
		}
	}
	return nil
}

func (k *fetchWorker) timed(n int, times []int64) ([]int64, error) {
	return stats.Times(n, times, func(int) error { return k.get(context.Background(), k.dst) })
}

func (d *fetchDriver) close() error { return d.release() }

// A fetchService is the server of such a baseline.
type fetchService struct {
	at   int
	stop func() error
	done chan error // the result of serving
}

// serveFetches runs serve in a goroutine until stop ends it. serve then returns nil
// or the error closed.
func serveFetches(port int, serve, stop func() error, closed error) *fetchService {
	s := &fetchService{at: port, stop: stop, done: make(chan error, 1)}
	go func() { // ends with stop
		err := serve()
		if errors.Is(err, closed) {
			err = nil
		}
		s.done <- err
	}()
	return s
}

func (s *fetchService) port() int     { return s.at }
func (s *fetchService) run(int) error { return nil }

func (s *fetchService) close() error {
	err := s.stop()
	return errors.Join(err, <-s.done)
}
