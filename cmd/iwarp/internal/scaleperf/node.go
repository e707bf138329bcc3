package scaleperf

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// What a node connects.
const (
	kindQP  = "qp"
	kindTCP = "tcp"
)

// A network is what a node does with connections of its kind.
type network interface {
	// listen listens on as many addresses as the order says.
	listen(ctx context.Context, o *listenOrder) ([]string, error)
	// dial sets up idle connections.
	dial(ctx context.Context, o *dialOrder) error
	// busy sets up the busy connection.
	busy(ctx context.Context, addr string) error
	// exchange sends a message on the busy connection, and waits for the answer.
	exchange() error
}

// An order is a request to a node: the field that is set.
type order struct {
	Files  uint64        `json:"files,omitempty"` // descriptors that the node needs; may be set besides another field
	Listen *listenOrder  `json:"listen,omitempty"`
	Dial   *dialOrder    `json:"dial,omitempty"`
	Busy   string        `json:"busy,omitempty"` // the address
	Talk   time.Duration `json:"talk,omitempty"`
	Memory bool          `json:"memory,omitempty"`
	Heap   string        `json:"heap,omitempty"` // the file for a profile

	Write *writeOrder `json:"write,omitempty"` // these are only for kindQP
	Load  *loadOrder  `json:"load,omitempty"`
	Leave bool        `json:"leave,omitempty"`
	Tally bool        `json:"tally,omitempty"`

	Scrape bool `json:"scrape,omitempty"` // the metrics
}

type listenOrder struct {
	Addrs int `json:"addrs"`
	MaxQP int `json:"max_qp"`
	Block int `json:"block,omitempty"`
}

// A dialOrder requests N connections, with the addresses in turn.
type dialOrder struct {
	Addrs  []string `json:"addrs"`
	N      int      `json:"n"`
	Window int      `json:"window"` // how many set-ups are in progress at a time
}

// A reply is the result of an order.
type reply struct {
	Addrs   []string      `json:"addrs,omitempty"`
	Elapsed time.Duration `json:"elapsed,omitempty"` // of the dialling, or of the scrape
	Talk    *latency      `json:"talk,omitempty"`
	Memory  *memory       `json:"memory,omitempty"`
	Octets  int           `json:"octets,omitempty"`
	Tally   *tally        `json:"tally,omitempty"`
}

// A latency is the latency of the exchanges of one run.
type latency struct {
	Exchanges int           `json:"exchanges"`
	P50       time.Duration `json:"p50"`
	P99       time.Duration `json:"p99"`
	P999      time.Duration `json:"p999"`
}

// A memory is the memory of a process, in octets.
type memory struct {
	Heap float64 `json:"heap"` // live heap, and stacks
	RSS  float64 `json:"rss"`
	Peak float64 `json:"peak"` // of what was resident
}

func readMemory() *memory {
	peak := peer.ResidentMemory().Peak
	peer.KeptMemory()
	m := peer.KeptMemory() // the second collection frees what pools hold
	var r runtime.MemStats
	runtime.ReadMemStats(&r)
	return &memory{Heap: float64(r.HeapAlloc + r.StackInuse), RSS: float64(m.RSS), Peak: float64(peak)}
}

// A server is the process of a node.
type server struct {
	network network
	qps     *qps // the network, if it consists of queue pairs
	times   []time.Duration
}

// runtimePart is the part of the memory of a node that the runtime is told to use.
const runtimePart = 0.9

// serve runs a node until stdin ends.
func serve(ctx context.Context, o *options, stdin io.Reader, stdout io.Writer) error {
	if o.limit > 0 {
		debug.SetMemoryLimit(int64(float64(o.limit) * mib * runtimePart))
	}
	if o.cgroup != "" {
		if err := enter(o.cgroup); err != nil {
			return err
		}
	}
	if o.heap != "" {
		runtime.MemProfileRate = 1
	}
	s := new(server)
	switch o.kind {
	case kindQP:
		s.qps = &qps{silent: o.silent}
		s.network = s.qps
		defer s.qps.close()
	case kindTCP:
		s.network = &sockets{silent: o.silent}
	default:
		return cli.Usagef("--kind %q: %s and %s are known", o.kind, kindQP, kindTCP)
	}
	return peer.ServeControl(ctx, stdin, stdout, s.do)
}

func (s *server) do(ctx context.Context, o *order) (r reply, err error) {
	if o.Files > 0 {
		peer.RaiseFiles(o.Files)
	}
	switch {
	case o.Listen != nil:
		r.Addrs, err = s.network.listen(ctx, o.Listen)
	case o.Dial != nil:
		began := time.Now()
		err = s.network.dial(ctx, o.Dial)
		r.Elapsed = time.Since(began)
	case o.Busy != "":
		err = s.network.busy(ctx, o.Busy)
	case o.Talk > 0:
		r.Talk, err = s.talk(o.Talk)
	case o.Memory:
		r.Memory = readMemory()
	case o.Heap != "":
		err = writeHeap(o.Heap)
	case s.qps != nil:
		return s.qps.do(ctx, o)
	default:
		err = errors.New("no such order")
	}
	return r, err
}

// talk exchanges messages on the busy connection.
func (s *server) talk(span time.Duration) (*latency, error) {
	s.times = s.times[:0]
	for end := time.Now().Add(span); len(s.times) == 0 || time.Now().Before(end); {
		began := time.Now()
		if err := s.network.exchange(); err != nil {
			return nil, err
		}
		s.times = append(s.times, time.Since(began))
	}
	return &latency{
		Exchanges: len(s.times), P50: stats.Quantile(s.times, 50), P99: stats.Quantile(s.times, 99), P999: s.times[len(s.times)-1-len(s.times)/1000],
	}, nil
}

func writeHeap(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

// A node is the command's handle of a node process.
type node struct{ remote peer.Remote }

// start starts a node.
func (b *bench) start(kind string, limit int, args ...string) (*node, error) {
	n := new(node)
	b.nodes = append(b.nodes, n)
	args = append([]string{"perf", "scale", "--serve", "--kind", kind, "--limit", strconv.Itoa(limit), "--peer-timeout", b.opts.silent.String()}, args...)
	return n, n.remote.Start(b.ctx, b.stderr, "", args...)
}

func (n *node) do(o order) (r reply, err error) {
	err = n.remote.Do(o, &r)
	return r, err
}

// stop ends all nodes, and removes the cgroup of the server.
func (b *bench) stop() (err error) {
	for _, n := range b.nodes {
		err = errors.Join(err, n.remote.Close())
	}
	b.nodes = nil
	b.group.remove()
	b.group = ""
	return err
}
