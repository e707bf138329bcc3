// Walog is a replicated write-ahead log, to show what RDMA Commit is for.
//
//	walog target [-addr HOST:PORT] FILE
//	walog demo [-records N] [-writers N] [-size OCTETS] [-dir DIR]
//	walog compare [-records N] [-size OCTETS] [-dir DIR]
//
// There is one writer and there are three targets. A record counts as written when two
// targets have it on their disks. The writer sends records with RDMA Writes and makes
// them durable with a Commit, whose follow-on then moves the tail of the log. So a tail
// that survives a crash never covers a record that does not. No code of the targets runs
// for a record; they register a file and wait.
//
// A new writer reads the tails of two targets, adopts the log of the better one, and
// copies it to the others (see writer.go). So any one target may be lost.
//
// Demo runs each target in its own process, kills one during the run and starts it
// again, and at the end compares the three files. Compare measures a record that is
// pushed like this against one that the target pulls: at the request of a message, the
// target reads the record with an RDMA Read, syncs its file, and answers.
//
// There is no authentication: every host that can reach a target can write its log. A target
// listens on loopback unless told otherwise. It needs a little-endian host (see log.go).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

func main() {
	program.Main("walog", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout) })
}

var errUsage = program.UsageError("usage: walog target|demo|compare [flags]; walog help says what they do")

// errTooLong is returned before any room is taken for the log. A log that one RemoteBuffer cannot describe is too long.
var errTooLong = program.UsageError("a log has less than 4 GiB: fewer records, shorter ones, or a smaller -file-size")

const help = `usage:
  walog target [flags] FILE   keeps the log of a writer in FILE, as one of three targets
  walog demo [flags]          runs three targets, kills one meanwhile, and compares their files
  walog compare [flags]       measures a record that is pushed against one that the target pulls

walog COMMAND -h lists the flags of a command.
`

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	if program.AsksForHelp(args[0]) {
		_, err := io.WriteString(out, help)
		return err
	}
	fs := flag.NewFlagSet("walog "+args[0], flag.ContinueOnError)
	fs.SetOutput(out)
	var o options
	switch args[0] {
	case "target":
		fs.StringVar(&o.addr, "addr", "127.0.0.1:0", "`ADDRESS` to listen on, host:port")
		fs.Int64Var(&o.file, "file-size", defaultFile, "octets of a new file")
	case "demo", "compare":
		fs.IntVar(&o.records, "records", 100_000, "records to write")
		fs.IntVar(&o.writers, "writers", 64, "goroutines that write records, each one at a time")
		fs.IntVar(&o.size, "size", 100, "octets of a record")
		fs.StringVar(&o.dir, "dir", "", "where to put the files, none of which may be there yet; empty: a directory for temporary ones")
	default:
		return errUsage
	}
	if err := fs.Parse(args[1:]); err != nil {
		return program.Called(err)
	}
	printing := func(f func(ctx context.Context, o *options, out io.Writer) error) func() error {
		return func() error {
			return program.Printing(ctx, out, func(ctx context.Context, out io.Writer) error { return f(ctx, &o, out) })
		}
	}
	switch args[0] {
	case "target":
		if fs.NArg() != 1 {
			return errUsage
		}
		switch {
		case o.file > math.MaxUint32:
			return errTooLong
		case o.file < fileSize(1, 1) && o.file != 0: // 0 uses an existing file as it is
			return program.UsageError(fmt.Sprintf("a log has %d octets at least, not -file-size %d", fileSize(1, 1), o.file))
		}
		return serve(ctx, o.addr, fs.Arg(0), o.file, out)
	case "demo":
		return o.inDir(demoFiles, printing(demo))
	default:
		return o.inDir(comparedFiles, printing(compare))
	}
}

// options holds the values of the flags.
type options struct {
	addr                   string
	dir                    string
	records, writers, size int
	file                   int64
}

// The files that demo and compare make.
var (
	demoFiles     = []string{"log0", "log1", "log2"}
	comparedFiles = []string{"pushed", "pulled"}
)

// inDir calls f, which makes files in the directory.
func (o *options) inDir(files []string, f func() error) error {
	defer program.OutlivePipe()()
	if o.records < 1 || o.writers < 1 || o.size < 1 || o.size > 1<<20 {
		return program.UsageError("there must be records, writers, and 1 to 1,048,576 octets of a record")
	}
	if o.file = fileSize(o.records, o.size); o.file > math.MaxUint32 || int64(o.records) > math.MaxUint32 { // what no int64 can say
		return errTooLong
	}
	if o.dir != "" {
		if err := unused(o.dir, files); err != nil {
			return err
		}
		return f()
	}
	dir, err := os.MkdirTemp("", "walog")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o.dir = dir
	return f()
}

// unused returns an error if a directory contains one of the files: this run would continue the log of an earlier run, and there
// would be no room for its records.
func unused(dir string, files []string) error {
	for _, name := range files {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s is there already: remove what an earlier run has left, or take another directory", path)
		}
	}
	return nil
}
