package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/target"
	"github.com/goiwarp/iwarp/internal/units"
	"github.com/goiwarp/iwarp/solicit"
)

const defaultListen = "127.0.0.1:" + defaultPort

// A serving holds the flags of serve.
type serving struct {
	backings, listen, allow list

	nqn       string
	crc       bool
	solicit   units.Size
	srq       int
	maxQueues int
	icd, ord  int
	auth      string
	tls       tlsFiles
	control   bool
	stats     time.Duration
}

func serveFlags(fs *flag.FlagSet) action {
	f := &serving{}
	fs.Var(&f.backings, "backing", "serve `SPEC`: mem:SIZE, file:PATH or block:PATH, with options as in file:PATH,size=10GiB; "+
		"each one is a namespace, with NSIDs from 1 on")
	fs.Var(&f.listen, "listen", "listen at `HOST:PORT`; it may be given several times (default "+defaultListen+")")
	fs.Var(&f.allow, "allow", "let only hosts of this `NQN` connect; it may be given several times (default: any)")
	fs.StringVar(&f.nqn, "nqn", "", "the `NQN` of the subsystem, which no other target may have: hosts take namespaces of the same NQN and NSID "+
		"for the same disk (default: made of the name of this machine, and the port)")
	fs.BoolVar(&f.crc, "crc", true, "use the CRC32c of MPA; with -crc=false only if the host wants it")
	fs.Var(&f.solicit, "solicit", "have no more than so many `octets` under way that were asked for, and none that were not, "+
		"such as data in capsules: 16KiB at least; 0: no bound")
	fs.IntVar(&f.srq, "srq", 0, "let all queues share so many `receives`; 0: each has its own")
	fs.IntVar(&f.maxQueues, "max-queues", 64, "I/O queues that a controller may have")
	fs.IntVar(&f.icd, "icd", 4096, "`octets` of data that a capsule may have, a multiple of 16 up to 16384")
	fs.IntVar(&f.ord, "ord", 16, "RDMA Reads outstanding on a connection at most")
	fs.StringVar(&f.auth, "auth", "", "authenticate hosts by the keys in this `file`; see nvme key")
	f.tls.flags(fs, "require certificates of hosts, from the CAs in this `file`")
	fs.BoolVar(&f.control, "control", false, "take commands from standard input: add SPEC, remove NSID, resize NSID SIZE, end HOSTNQN QID, stats")
	fs.DurationVar(&f.stats, "stats", 0, "write the counters to standard error that often, as a line of JSON, and at the end; 0: never")
	return f.serve
}

// complete adds the defaults that depend on other flags.
func (f *serving) complete() error {
	if len(f.listen) == 0 {
		f.listen = list{defaultListen}
	}
	for i, addr := range f.listen {
		f.listen[i] = withPort(addr)
	}
	if f.nqn != "" {
		return nil
	}
	machine, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("this machine has no name, so there must be an -nqn: %w", err)
	}
	_, port, err := net.SplitHostPort(f.listen[0])
	f.nqn = fmt.Sprintf("nqn.2026-11.io.github.goiwarp:%s.%s", machine, port)
	return err
}

// check finds errors that package target cannot see, or values that it would take for a default.
func (f *serving) check() error {
	switch least := units.Size(capsule.PageSize << leastMDTS); {
	case len(f.backings) == 0 && !f.control:
		return usage("there must be a -backing, such as mem:1GiB")
	case f.solicit != 0 && f.solicit < least:
		return usage("-solicit is %s, and less than %s", &f.solicit, &least)
	case f.srq < 0:
		return usage("-srq is %d, and negative", f.srq)
	case f.maxQueues < 1:
		return usage("-max-queues is %d, and less than 1", f.maxQueues)
	case f.ord < 1:
		return usage("-ord is %d, and less than 1", f.ord)
	case f.icd < 0 || f.icd > maxInCapsule || f.icd%16 != 0:
		return usage("-icd is %d, and not a multiple of 16 up to %d", f.icd, maxInCapsule)
	case f.stats < 0:
		return usage("-stats is %v, and negative", f.stats)
	}
	return f.checkTexts()
}

// checkTexts checks the flags that have their own syntax.
func (f *serving) checkTexts() error {
	for _, spec := range f.backings { // check all before a file is made for the first one
		if _, err := backend.ParseSpec(spec); err != nil {
			return usage("%v", err)
		}
	}
	if err := capsule.CheckNQN(f.nqn); err != nil {
		return usage("-nqn: %v", err)
	}
	for _, nqn := range f.allow {
		if err := capsule.CheckNQN(nqn); err != nil {
			return usage("-allow: %v", err)
		}
	}
	return nil
}

const maxInCapsule = 16 << 10

// One command moves at most 2^MDTS pages.
const (
	leastMDTS   = 2
	defaultMDTS = 8
)

// dispatch is how long the data of a command may wait for the window. Hosts repeat it then.
const dispatch = 5 * time.Second

// config makes the configuration of the target. The caller must close its Solicitor.
func (f *serving) config(log *slog.Logger) (_ *target.Config, err error) {
	c := &target.Config{
		NoCRC: !f.crc, ORD: f.ord, SRQ: f.srq, InCapsule: f.icd, MDTS: defaultMDTS, Logger: log,
		Limits: target.Limits{IOQueues: f.maxQueues},
	}
	if f.icd == 0 {
		c.InCapsule = -1
	}
	if f.auth != "" {
		var keys *keyFile
		if c.Auth, keys, err = authenticator(f.auth, log); err != nil {
			return nil, err
		}
		c.Authorize = keys.authorize
	}
	if c.TLS, err = f.tls.server(); err != nil {
		return nil, err
	}
	if f.solicit > 0 {
		for f.solicit < capsule.PageSize<<c.MDTS {
			c.MDTS--
		}
		w := solicit.Config{Fixed: int64(f.solicit), Dispatch: [2]time.Duration{dispatch, dispatch}}
		if err := w.Check(); err != nil {
			return nil, fmt.Errorf("-solicit: %w", err)
		}
		c.Solicitor = iwarp.NewSolicitor(w)
	}
	return c, nil
}

// serve serves until ctx ends.
func (f *serving) serve(ctx context.Context, s *streams, _ []string) (err error) {
	if err := f.complete(); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	cfg, err := f.config(slog.New(slog.NewTextHandler(s.diag, nil)))
	if err != nil {
		return err
	}
	if cfg.Solicitor != nil {
		defer func() { err = errors.Join(err, cfg.Solicitor.Close()) }()
	}
	d, err := newDisks(cfg, f)
	if err != nil {
		return err
	}
	if f.stats > 0 {
		defer d.report(s.diag, f.stats)()
	}
	defer func() { err = errors.Join(err, d.end()) }()
	listeners, err := f.open(ctx, d.target)
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	if err != nil {
		return err
	}
	if f.control {
		go d.obey(s.in, s.out)
	}
	return f.wait(ctx, s, d.target, listeners)
}

// open listens at all addresses, or fails.
func (f *serving) open(ctx context.Context, t *target.Target) (listeners []*iwarp.Listener, err error) {
	for _, addr := range f.listen {
		l, err := t.Listen(ctx, "tcp", addr)
		if err != nil {
			return listeners, fmt.Errorf("-listen %s: %w", addr, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// wait accepts connections until ctx or a listener ends.
func (f *serving) wait(ctx context.Context, s *streams, t *target.Target, listeners []*iwarp.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	for _, l := range listeners {
		go func() {
			err := t.Serve(ctx, l)
			if ctx.Err() != nil {
				err = nil // ending was requested
			}
			cancel()
			ended <- err
		}()
		fmt.Fprintf(s.out, "listening on %v, subsystem %s\n", l.Addr(), f.nqn)
	}
	var errs []error
	for range listeners {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// withPort adds the NVMe port to an address without one.
func withPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	if _, err := netip.ParseAddr(addr); err == nil { // also one with a zone
		return net.JoinHostPort(addr, defaultPort)
	}
	return addr + ":" + defaultPort
}

const defaultPort = "4420"
