package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/goiwarp/iwarp/examples/kvstore/kv"
)

// benchTenant is the tenant of the measurement, whose master key is not secret.
const benchTenant = "bench"

var benchMaster = []byte("thirty-two octets, and no secret")

// A benchHello is the first line of output of the server of a measurement.
type benchHello struct{ Store, TCP string }

// A benchServer runs both replicas, of which one is read, and the server of the baseline with the same
// memory.
type benchServer struct {
	backup, primary *kv.Replica
	l               net.Listener
	dir             string
	tasks           sync.WaitGroup
}

func benchKey(i int) []byte { return fmt.Appendf(nil, "key-%08d", i) }

func benchValue(i int) []byte { return fmt.Appendf(nil, "%064d", i) }

// benchServe is the program of the server: for each line of the input it prints the processor time that
// it has used. It ends at the end of the input.
func benchServe(ctx context.Context, o *options, in io.Reader, out io.Writer) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	asked := make(chan struct{})
	go func() {
		defer end()
		for lines := bufio.NewScanner(in); lines.Scan(); {
			asked <- struct{}{}
		}
	}()
	s := new(benchServer)
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx, o); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return s.answer(ctx, asked, json.NewEncoder(out))
}

// answer prints the addresses of the servers, and the processor time at each request.
func (s *benchServer) answer(ctx context.Context, asked <-chan struct{}, answers *json.Encoder) error {
	if err := answers.Encode(benchHello{s.primary.Addr().String(), s.l.Addr().String()}); err != nil {
		return err
	}
	for {
		select {
		case <-asked:
		case <-ctx.Done():
			return nil
		}
		used, err := processorTime()
		if err != nil {
			return err
		}
		if err := answers.Encode(used); err != nil {
			return err
		}
	}
}

func (s *benchServer) open(ctx context.Context, o *options) (err error) {
	if s.dir, err = os.MkdirTemp("", "kvstore-bench-"); err != nil {
		return err
	}
	cfg := kv.Config{
		Network: "tcp", Addr: "127.0.0.1:0", Master: benchMaster, Plain: true, Frozen: true, Depth: o.depth,
		Tenants: []kv.Tenant{{Name: benchTenant, Shape: benchShape(o.keys)}}, LogHalf: benchHalf(o.keys),
	}
	cfg.Path = filepath.Join(s.dir, "backup")
	if s.backup, err = kv.Open(ctx, &cfg); err != nil {
		return err
	}
	cfg.Path, cfg.Backup = filepath.Join(s.dir, "primary"), s.backup.Addr().String()
	if s.primary, err = kv.Open(ctx, &cfg); err != nil {
		return err
	}
	select {
	case <-s.primary.Served():
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.fill(ctx, o); err != nil {
		return err
	}
	if s.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	s.tasks.Go(s.accept)
	return nil
}

// maxBenchKeys is the largest number of keys that are certain to fit into the index.
const maxBenchKeys = 1 << 20

// benchShape has as many buckets as keys, of four entries, and 256 octets for each value.
func benchShape(keys int) kv.Shape {
	s := kv.Shape{Buckets: 16, Values: uint64(keys+256) * 256 &^ 0xffff}
	for int(s.Buckets) < keys {
		s.Buckets *= 2
	}
	return s
}

// benchHalf allows 128 octets for the change of each key, which takes 120, and some more for the rest of a log.
func benchHalf(keys int) uint64 { return 1<<20 + 128*uint64(keys) }

// fill stores all values through several clients, so that one Commit contains many.
func (s *benchServer) fill(ctx context.Context, o *options) error {
	key, err := kv.TenantKey(benchMaster, benchTenant)
	if err != nil {
		return err
	}
	const clients, window = 8, 8
	errs := make(chan error, clients)
	for n := range clients {
		go func() {
			errs <- func() error {
				c, err := kv.Dial(ctx, &kv.ClientConfig{
					Network: "tcp", Primary: s.primary.Addr().String(), Backup: s.backup.Addr().String(), Tenant: benchTenant, Key: key, Depth: o.depth,
				})
				if err != nil {
					return err
				}
				puts := make(chan error, window)
				for k := range window {
					go func() {
						for i := n*window + k; i < o.keys; i += clients * window {
							if err := c.Put(ctx, benchKey(i), benchValue(i)); err != nil {
								puts <- err
								return
							}
						}
						puts <- nil
					}()
				}
				for range window {
					err = errors.Join(err, <-puts)
				}
				return errors.Join(err, c.Close())
			}()
		}()
	}
	for range clients {
		err = errors.Join(err, <-errs)
	}
	return err
}

// accept serves the connections of the baseline.
func (s *benchServer) accept() {
	tenant, err := kv.RegionOf(benchTenant)
	if err != nil {
		return
	}
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.tasks.Go(func() {
			_ = serveTCP(c, s.primary, tenant) // the client sees the end of the connection
			_ = c.Close()
		})
	}
}

func (s *benchServer) close() error {
	var errs []error
	if s.l != nil {
		errs = append(errs, s.l.Close())
	}
	s.tasks.Wait() // the client has ended its connections
	for _, r := range []*kv.Replica{s.primary, s.backup} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
