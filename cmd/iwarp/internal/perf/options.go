package perf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/chart"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/exporter"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// options holds the flags.
type options struct {
	args         string // as they were given
	server, once bool
	addr, client string
	suite        string
	scrape       time.Duration
	only         list
	ops          list
	sizes        sizes
	region       sizes
	work         workload
	serveSet     *pflag.FlagSet // of the server alone
	workSet      *pflag.FlagSet // of what is measured
	network      string
	baseline     string
	pairing      pairing
	json         bool
	html         string
	profile      string
	metrics      string
	progress     *cli.Progress
}

// A list is a flag of names, separated by commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Type returns the type that the help shows.
func (l *list) Type() string { return "names" }

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

// Type returns the type that the help shows.
func (z *sizes) Type() string { return "sizes" }

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
		return 0, fmt.Errorf("%q is no size: want 1 to 1G, as in 64, 4K or 1M", s)
	}
	return n << shift, nil
}

// sweep is the sizes that are measured if none is given.
var sweep = sizes{64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}

func newOptions() *options {
	return &options{
		ops: list{opWrite, opRead}, sizes: sweep, region: sizes{1},
		work:     workload{Kind: "iwarp"},
		baseline: "tcp", pairing: pairing{pairs: 9, span: 100 * time.Millisecond},
	}
}

func (o *options) flags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.server, "serve", false, "be the server; without --serve and --connect both run here, in two processes")
	o.serveSet = pflag.NewFlagSet("", pflag.ContinueOnError)
	o.serveSet.StringVar(&o.addr, "addr", ":7175", "server: `ADDRESS` to listen on, host:port")
	o.serveSet.BoolVar(&o.once, "once", false, "server: serve one client, then end")
	fs.AddFlagSet(o.serveSet)
	fs.StringVar(&o.client, "connect", "", "be the client of the server at `ADDRESS`, host:port")
	fs.StringVar(&o.suite, "suite", "", "run all cases of a suite and exit with 1 if a target is missed: standard")
	fs.Var(&o.only, "case", "only these cases of the suite")
	fs.DurationVar(&o.scrape, "scrape", 0, "with --suite: run each workload of the library in turn with and without scraping the metrics of both processes at this interval, for at least two intervals; exit with 1 if it keeps less than 0.98 of its speed")
	fs.StringVar(&o.baseline, "baseline", o.baseline, "what to compare with: none or "+strings.Join(baselines(), ", "))
	fs.IntVar(&o.pairing.pairs, "pairs", o.pairing.pairs, "runs of the subject and of the baseline, in turn")
	fs.DurationVar(&o.pairing.span, "span", o.pairing.span, "about how long a run takes")
	fs.BoolVar(&o.json, "json", false, "print one JSON object a line")
	fs.StringVar(&o.html, "html", "", "write a report with plots to `FILE`")
	fs.StringVar(&o.profile, "cpuprofile", "", "write CPU profiles to `FILE`.client and FILE.server; with --serve or --connect, write that of this side to FILE")
	fs.StringVar(&o.metrics, "metrics", "", "serve a live page of this process at http://`ADDRESS`/, and its counters for Prometheus at /metrics: host:port, on the loopback without a host; a server that is started here serves its own at the next port")
	o.workSet = pflag.NewFlagSet("", pflag.ContinueOnError)
	o.workFlags(o.workSet)
	fs.AddFlagSet(o.workSet)
}

// workFlags defines the flags of the operations that are measured.
func (o *options) workFlags(fs *pflag.FlagSet) {
	w := &o.work
	fs.Var(&o.ops, "op", "operations: "+strings.Join(operations, ","))
	fs.Var(&o.sizes, "size", "octets of an operation: 64,4K,1M")
	fs.Var(&o.region, "region", "octets through which the operations move, if more than the size")
	fs.BoolVar(&w.Shared, "shared", false, "outstanding Reads share one sink of the size of the region, instead of having one each")
	fs.IntVar(&w.Depth, "depth", 16, "outstanding operations on a connection")
	fs.IntVar(&w.Batch, "batch", 0, "operations of one post, 0: as many as the depth has room for")
	fs.BoolVar(&w.Moderate, "moderate", false, "a completion only for the last operation of a post")
	fs.IntVar(&w.Conns, "conns", 1, "connections")
	fs.BoolVar(&w.Duplex, "duplex", false, "write and read in both directions at once")
	fs.BoolVar(&w.CRC, "crc", true, "CRC32c of every FPDU")
	fs.BoolVar(&w.Markers, "markers", false, "MPA Markers, in both directions")
	fs.IntVar(&w.ULPDU, "ulpdu", 0, "maximum octets of a DDP segment, from 128, or from 514 over SCTP; 0: as the path allows")
	fs.BoolVar(&w.Latency, "latency", false, "one operation at a time, each timed")
	fs.DurationVar(&w.Poll, "poll", 0, "poll for this long before a wait sleeps, on both sides")
	fs.StringVar(&w.Wait, "wait", waitPark, "how a wait sleeps, on both sides: park (only the goroutine) or block (its thread, too)")
	fs.IntVar(&w.Chunk, "chunk", 0, "octets of one call of the tcp or tls baseline, 0: the best of 64K, 256K and 1M")
	fs.IntVar(&w.Slow, "slow", 0, "further connections that read 4 KiB every 250ms")
	fs.IntVar(&w.Idle, "idle", 0, "further connections that do nothing")
	fs.StringVar(&o.network, "network", "tcp", "transport of the library: tcp, sctp or sctp+udp")
	fs.StringVar(&w.Auth, "auth", authmode.Plain, "how both sides authenticate each other: "+strings.Join(authmode.All, ", "))
	fs.Int64Var(&w.Window, "solicit", 0, "octets that the client's Reads may request at a time, by a Solicitor; 0: no limit, and no Solicitor")
	fs.StringVar(&w.CC, "cc", peer.DefaultCC, "congestion control of all connections, empty: the system's")
}

// baselines returns alone, and the names of all kinds except the library itself.
func baselines() []string {
	names := []string{alone}
	for _, k := range kinds[1:] {
		names = append(names, k.name)
	}
	return names
}

func (o *options) check() error {
	if o.work.Network = o.network; o.network == "tcp" {
		o.work.Network = ""
	}
	switch {
	case o.server && o.client != "":
		return cli.Usagef("--serve and --connect exclude each other")
	case o.baseline != "none" && !slices.Contains(baselines(), o.baseline):
		return cli.Usagef("--baseline %q: none, %s are known", o.baseline, strings.Join(baselines(), ", "))
	case o.pairing.pairs < 1 || o.pairing.span < time.Millisecond:
		return cli.Usagef("--pairs must be at least 1 and --span 1ms")
	case o.work.Depth < 1 || o.work.Conns < 1:
		return cli.Usagef("--depth and --conns must be at least 1")
	case len(o.region) != 1:
		return cli.Usagef("--region takes one size")
	}
	if err := o.checkUnused(); err != nil {
		return err
	}
	if err := o.checkSuite(); err != nil {
		return err
	}
	if err := o.checkMetrics(); err != nil {
		return err
	}
	return o.checkWorkloads()
}

// checkWorkloads checks the workloads that the flags select, and their baselines.
func (o *options) checkWorkloads() error {
	all := o.workloads()
	for _, c := range o.againstBaseline() {
		for _, w := range c.workloads() {
			if base := c.base(w); base != nil {
				all = append(all, *base)
			}
		}
	}
	for _, w := range all {
		w = w.filled()
		if err := w.check(); err != nil {
			return cli.UsageError(err.Error())
		}
	}
	return nil
}

// againstBaseline returns the options whose workloads are measured against the baseline: for a suite, those of its report's plots.
func (o *options) againstBaseline() []*options {
	switch {
	case o.server || o.suite != "" && o.html == "":
		return nil
	case o.suite != "":
		return o.overviews()
	}
	return []*options{o}
}

// checkMetrics checks that the server that is started here has a port for its metrics.
func (o *options) checkMetrics() error {
	if o.server || o.client != "" {
		return nil // none is started
	}
	if _, err := exporter.Next(o.metrics); err != nil {
		return cli.UsageError("--metrics: " + err.Error())
	}
	return nil
}

// oneGiven returns the name of a flag that was given, empty if none was.
func oneGiven(fs *pflag.FlagSet, except string) (name string) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != except {
			name = f.Name
		}
	})
	return name
}

// checkUnused refuses flags that would do nothing.
func (o *options) checkUnused() error {
	ofSuite := "cc" // the flag that says how the cases are measured
	if o.server {
		ofSuite = ""
	}
	work, serving := oneGiven(o.workSet, ofSuite), oneGiven(o.serveSet, "")
	switch {
	case !o.server && serving != "":
		return cli.Usagef("--%s is for --serve", serving)
	case o.work.Window != 0 && !slices.Contains(o.ops, opRead):
		return cli.Usagef("--solicit is for the Reads of --op read")
	case o.server && (o.suite != "" || o.html != ""):
		return cli.Usagef("--suite and --html are for the client, not for --serve")
	case o.server && work != "":
		return cli.Usagef("--%s is for the client, which tells the server", work)
	case o.suite != "" && work != "":
		return cli.Usagef("--%s is not for a suite: its cases say what is measured", work)
	}
	return nil
}

// checkSuite checks the flags of a suite.
func (o *options) checkSuite() error {
	unknown := slices.IndexFunc(o.only, func(name string) bool { return len(casesOf(list{name})) == 0 })
	switch {
	case o.suite != "" && o.suite != "standard":
		return cli.Usagef("--suite %q: there is only standard", o.suite)
	case len(o.only) > 0 && o.suite == "":
		return cli.Usagef("--case needs --suite")
	case unknown >= 0:
		return cli.Usagef("--case: the suite has no case %q", o.only[unknown])
	case o.suite != "" && len(o.selected()) == 0:
		return cli.Usagef("--case %v: there is nothing to measure", &o.only)
	case o.scrape != 0 && (o.scrape < 0 || o.suite == ""):
		return cli.Usagef("--scrape needs --suite, and a time between two scrapes, as 1s")
	}
	return nil
}

// workloads returns the subjects that the flags select.
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
