// Command interop is the laboratory that tests the library against siw, the soft-iWARP
// driver of Linux. It boots a small virtual machine with one of Debian's kernels, siw
// built from Debian's source, and rdma-core's tools, and runs every case of the
// matrix in it, in both roles.
//
//	go run ./interop                       everything, on both kernels
//	go run ./interop -core -kernel 6.1     what CI runs
//	go run ./interop -run 'rping.*v6'      the cases whose names match
//	go run ./interop -list                 the names of the cases that the other flags select
//	go run ./interop -sabotage rtr         plant a defect, and check that it is detected
//	go run ./interop -nvme                 storage: NVMe over RDMA, with Linux as the host and as the target
//	go run ./interop -nvme -figures        compare the target with those of Linux
//	go run ./interop -nvme -power 20       cut the power of an NVMe target
//	go run ./interop -mounts               our file servers, mounted by Linux: 9P and NFS over RDMA
//	go run ./interop -mounts -figures      compare them with the same servers over TCP
//	go run ./interop -streams              stream sockets: librdmacm's rstream, riostream, rcopy and librspreload
//	go run ./interop -streams -release trixie  the same with a newer librdmacm
//	go run ./interop -power 100            cut the power of an RDMA Commit target
//	go run ./interop -creations 10         cut it while files are made
//	go run ./interop -faults               let its disk fail
//
// It prints one line per case and ends with exit status 0 only if all cases have passed.
// See docs/interop.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/interop/matrix"
	"github.com/goiwarp/iwarp/interop/pace"
	"github.com/goiwarp/iwarp/interop/powercut"
)

// config holds the values of the flags.
type config struct {
	kernels []string
	run     *regexp.Regexp
	core    bool
	table   string // of the cases
	figures bool   // run the cases that measure instead of those that judge
	install bool
	accel   string
	release string // of Debian, of the guest's programs; "": that of this machine
	cache   string // folder of files that can be made again
	out     string // folder of what the cases leave

	cuts      int  // of the power; 0: run the matrix
	creations int  // cuts of machines that make files
	faults    bool // run the cases of failing disks
	sabotage  string
	planted   []sabotage // the sabotages of the flag without -power, -creations and -faults
	seed      uint64
}

// power reports whether machines without siw are run instead of the cases.
func (c *config) power() bool { return c.cuts > 0 || c.creations > 0 || c.faults }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := mainStatus(ctx)
	stop()
	os.Exit(code)
}

func mainStatus(ctx context.Context) int {
	cfg, list, err := parseFlags()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 2
	}
	l := &lab{config: cfg, began: time.Now(), pace: pace.OfMachine()}
	if list {
		l.list(os.Stdout)
		return 0
	}
	if cfg.power() {
		if err := l.runPower(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "interop:", err)
			return 1
		}
		return 0
	}
	if err := l.runAll(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		l.failed++
	}
	fmt.Printf("%d passed, %d failed\n", l.passed, l.failed)
	if l.failed > 0 || l.passed == 0 {
		return 1
	}
	return 0
}

// tableFlag makes the flag that chooses a table.
func (c *config) tableFlag(name, usage string) {
	flag.BoolFunc(name, usage, func(string) error {
		if c.table != matrix.Matrix && c.table != name {
			return fmt.Errorf("-%s excludes it", c.table)
		}
		c.table = name
		return nil
	})
}

func parseFlags() (cfg config, list bool, err error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return cfg, false, err
	}
	kernels := flag.String("kernel", "all", "kernel series to run, or all of "+strings.Join(allSeries(), ", "))
	run := flag.String("run", "", "run only the cases whose names match this `regexp`")
	flag.BoolVar(&list, "list", false, "list the cases that the other flags choose, and run none")
	flag.BoolVar(&cfg.figures, "figures", false, "with -nvme or -mounts: run what compares speeds, and nothing else")
	flag.BoolVar(&cfg.core, "core", false, "run the core of the matrix only")
	cfg.tableFlag(matrix.Mounts, "run the cases of file systems that Linux mounts, in place of the others, likewise")
	cfg.tableFlag(matrix.Streams, "run the cases of stream sockets, in place of the others, likewise")
	cfg.tableFlag(matrix.NVMe, "run the cases of NVMe over RDMA, in place of the others; -core and -run choose among them")
	flag.BoolVar(&cfg.install, "install", os.Geteuid() == 0, "install missing programs of the host with apt-get")
	flag.StringVar(&cfg.accel, "accel", "tcg,thread=multi", "QEMU's accelerator; kvm where it works")
	flag.StringVar(&cfg.release, "release", "", "`release` of Debian of the guest's programs, such as trixie (default: that of this machine)")
	flag.StringVar(&cfg.cache, "cache", filepath.Join(base, "iwarp-interop"), "`folder` for packages, kernels and modules")
	flag.StringVar(&cfg.out, "out", "", "`folder` for captures and logs, in a folder for each kernel and siw (default: run in the cache folder)")
	flag.IntVar(&cfg.cuts, "power", 0, "cut the power of a target `N` times, in place of the cases")
	flag.IntVar(&cfg.creations, "creations", 0, "cut the power of a machine that makes files `N` times, in place of the cases")
	flag.BoolVar(&cfg.faults, "faults", false, "run the cases of failing disks, in place of the others")
	flag.StringVar(&cfg.sabotage, "sabotage", powercut.Honest, "what -power is to find out: "+strings.Join(powercut.Sabotages, ", ")+
		"; or -creations: "+strings.Join(powercut.CreationSabotages, ", ")+
		"; or else the captures, several with commas: "+strings.Join(wireSabotages(), ", "))
	flag.Uint64Var(&cfg.seed, "seed", 0, "seed of -power; 0: another one each time")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("there are no arguments, only flags: %q", flag.Arg(0))
	case cfg.cuts < 0 || cfg.creations < 0:
		err = errors.New("-power and -creations are not negative")
	case cfg.power():
		err = cfg.checkPower()
	default:
		cfg.planted, err = parseSabotages(cfg.sabotage)
	}
	if err != nil {
		return cfg, false, err
	}
	if cfg.kernels = allSeries(); *kernels != "all" {
		if !slices.Contains(cfg.kernels, *kernels) {
			return cfg, false, fmt.Errorf("no kernel %q", *kernels)
		}
		cfg.kernels = []string{*kernels}
	}
	if cfg.out == "" {
		cfg.out = filepath.Join(cfg.cache, "run")
		if cfg.power() {
			cfg.out = filepath.Join(cfg.cache, "power")
		} else if cfg.table != matrix.Matrix {
			cfg.out = filepath.Join(cfg.cache, cfg.table)
		} else if cfg.planted != nil {
			cfg.out = filepath.Join(cfg.cache, "sabotage")
		}
	}
	if cfg.run, err = regexp.Compile(*run); err != nil {
		return cfg, false, err
	}
	return cfg, list, cfg.checkChoice()
}

// checkChoice refuses flags that select no case, and flags that would select among cases if the others select none.
func (c *config) checkChoice() error {
	chooses := c.core || c.figures || c.run.String() != ""
	switch {
	case chooses && c.power():
		return errors.New("-core, -figures and -run are not for -power, -creations and -faults")
	case chooses && c.planted != nil:
		return errors.New("-core, -figures and -run are not for -sabotage, which has cases of its own")
	case !c.power() && len((&lab{config: *c}).chosen()) == 0:
		return errors.New("no case is chosen: -list with fewer flags shows what there is")
	}
	return nil
}
