package perf

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/chart"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// A UsageError says that the command was called wrongly.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// options are what the flags say.
type options struct {
	args         []string // as they were given
	server, once bool
	addr, client string
	suite        string
	only         list
	ops          list
	sizes        sizes
	region       sizes
	work         workload
	baseline     string
	pairing      pairing
	json         bool
	html         string
	profile      string
}

// A list is a flag of names, with commas between them.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error {
	*l = strings.Split(s, ",")
	return nil
}

// sizes is a flag of octets: 64,4K,1M.
type sizes []int

func (z *sizes) String() string {
	var b []string
	for _, n := range *z {
		b = append(b, chart.SizeName(n))
	}
	return strings.Join(b, ",")
}

func (z *sizes) Set(s string) error {
	*z = nil
	for f := range strings.SplitSeq(s, ",") {
		n, err := parseSize(f)
		if err != nil {
			return err
		}
		*z = append(*z, n)
	}
	return nil
}

func parseSize(s string) (int, error) {
	digits := strings.TrimRight(strings.ToUpper(s), "KMG")
	shift, ok := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[strings.ToUpper(s)[len(digits):]]
	n, err := strconv.Atoi(digits)
	if err != nil || !ok || n < 1 || n > maxSize>>shift {
		return 0, fmt.Errorf("%q is no size of 1..1G", s)
	}
	return n << shift, nil
}

// sweep is what is measured where no size is given.
var sweep = sizes{64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{
		ops: list{opWrite, opRead}, sizes: sweep, region: sizes{1},
		work:     workload{Kind: "iwarp"},
		baseline: "tcp", pairing: pairing{pairs: 9, span: 100 * time.Millisecond},
	}
	fs := flag.NewFlagSet("iwarp perf", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.flags(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, UsageError(err.Error())
	}
	if fs.NArg() > 0 {
		return nil, UsageError(fmt.Sprintf("unexpected arguments %q", fs.Args()))
	}
	return o, o.check()
}

func (o *options) flags(fs *flag.FlagSet) {
	fs.BoolVar(&o.server, "s", false, "be the server; without -s and -c both run here, in two processes")
	fs.StringVar(&o.addr, "a", ":7175", "server: `ADDRESS` to listen on, host:port")
	fs.BoolVar(&o.once, "once", false, "server: go by the first client")
	fs.StringVar(&o.client, "c", "", "be the client of the server at `ADDRESS`, host:port")
	fs.StringVar(&o.suite, "suite", "", "run all cases of a suite and exit with 1 if a target is missed: standard")
	fs.Var(&o.only, "case", "only these cases of the suite")
	fs.Var(&o.ops, "op", "operations: "+strings.Join(operations, ","))
	fs.Var(&o.sizes, "size", "octets of an operation: 64,4K,1M")
	fs.Var(&o.region, "region", "octets that the operations walk through, if more than the size")
	fs.BoolVar(&o.work.Shared, "shared", false, "the Reads under way share a sink of the size of the region, instead of one each")
	fs.IntVar(&o.work.Depth, "depth", 16, "operations under way on a connection")
	fs.IntVar(&o.work.Batch, "batch", 0, "operations of one post, 0: as many as the depth has room for")
	fs.BoolVar(&o.work.Moderate, "moderate", false, "a completion only for the last operation of a post")
	fs.IntVar(&o.work.Conns, "conns", 1, "connections")
	fs.BoolVar(&o.work.Duplex, "duplex", false, "write and read in both directions at once")
	fs.BoolVar(&o.work.CRC, "crc", true, "CRC32c of every FPDU")
	fs.BoolVar(&o.work.Markers, "markers", false, "MPA Markers, in both directions")
	fs.IntVar(&o.work.ULPDU, "ulpdu", 0, "octets of a DDP segment at most, 0: as the path allows")
	fs.BoolVar(&o.work.Latency, "latency", false, "one operation at a time, each timed")
	fs.DurationVar(&o.work.Poll, "poll", 0, "poll so long before sleeping, on both sides")
	fs.StringVar(&o.work.Wait, "wait", waitPark, "how both sides sleep that wait: park or block")
	fs.IntVar(&o.work.Chunk, "chunk", 0, "octets of one call of the tcp or tls baseline, 0: the best of 64K, 256K and 1M")
	fs.IntVar(&o.work.Slow, "slow", 0, "further connections that read 4 KiB every 250ms")
	fs.IntVar(&o.work.Idle, "idle", 0, "further connections that do nothing")
	fs.Func("network", "what the library goes over: tcp, sctp or sctp+udp", o.network)
	fs.StringVar(&o.work.Auth, "auth", authmode.Plain, "how both sides authenticate each other: "+strings.Join(authmode.All, ", "))
	fs.Int64Var(&o.work.Window, "solicit", 0, "octets that the client's Reads may ask for at a time, by a Solicitor; 0: no limit, and no Solicitor")
	fs.StringVar(&o.work.CC, "cc", peer.DefaultCC, "congestion control of all connections, empty: the system's")
	fs.StringVar(&o.baseline, "baseline", o.baseline, "what to compare with: none or "+strings.Join(baselines(), ", "))
	fs.IntVar(&o.pairing.pairs, "pairs", o.pairing.pairs, "runs of the subject and of the baseline, in turn")
	fs.DurationVar(&o.pairing.span, "span", o.pairing.span, "about how long a run takes")
	fs.BoolVar(&o.json, "json", false, "print one JSON object a line")
	fs.StringVar(&o.html, "html", "", "write a report with plots to `FILE`")
	fs.StringVar(&o.profile, "cpuprofile", "", "write CPU profiles to `FILE`.client and FILE.server")
}

func (o *options) network(name string) error {
	o.work.Network = name
	if name == "tcp" {
		o.work.Network = ""
	}
	return nil
}

// baselines are the names of all kinds but the library itself, and alone.
func baselines() []string {
	names := []string{alone}
	for _, k := range kinds[1:] {
		names = append(names, k.name)
	}
	return names
}

func (o *options) check() error {
	switch {
	case o.server && o.client != "":
		return UsageError("-s and -c exclude each other")
	case o.suite != "" && o.suite != "standard":
		return UsageError(fmt.Sprintf("no suite %q", o.suite))
	case o.baseline != "none" && !slices.Contains(baselines(), o.baseline):
		return UsageError(fmt.Sprintf("no baseline %q", o.baseline))
	case o.pairing.pairs < 1 || o.pairing.span < time.Millisecond:
		return UsageError("-pairs must be at least 1 and -span 1ms")
	case len(o.region) != 1:
		return UsageError("-region takes one size")
	}
	for _, w := range o.workloads() {
		w = w.filled()
		if err := w.check(); err != nil {
			return UsageError(err.Error())
		}
	}
	return nil
}

// workloads are the subjects that the flags ask for.
func (o *options) workloads() []workload {
	var ws []workload
	for _, op := range o.ops {
		sizes := o.sizes
		if op == opAtomic {
			sizes = []int{atomicSize}
		}
		for _, size := range sizes {
			w := o.work
			w.Op, w.Size, w.Region = op, size, o.region[0]
			ws = append(ws, w)
		}
	}
	return ws
}
