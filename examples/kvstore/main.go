// Kvstore is a replicated key-value store, to show what one-sided operations are for. The store itself
// is package kv.
//
//	kvstore keys DIR TENANT...
//	kvstore serve -file FILE [-addr HOST:PORT] [-master FILE] [-tenants NAME,...] [-backup HOST:PORT]
//	kvstore get|put|delete [-primary HOST:PORT] [-backup HOST:PORT] [-tenant NAME] [-key FILE] KEY [VALUE]
//	kvstore bench [-pairs N] [-depth N] [-keys N] [-span DURATION]
//
// Keys makes a master key for the servers, or uses the one in DIR, and makes a key for each tenant.
// Serve runs one of two replicas: the one with -backup is the primary. Both have the same tenants and sizes. Serve
// writes warnings to standard error, such as why there is no connection to the backup, once for each reason.
//
// Bench measures Gets of 64-octet values, from a server in a separate process, by the processor time
// that the server uses for them: plain RDMA Reads of the index and the value; the same reads sealed; both
// kinds by a client that remembers where values are and reads only the values; and the baseline, pipelined
// requests over TCP that a goroutine answers from the same memory. It exits with 1 if the number of plain
// Gets of index and value per processor second is less than 1.2 times that of the baseline.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"time"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

func main() {
	program.Main("kvstore", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) })
}

var errUsage = program.UsageError("usage: kvstore keys|serve|get|put|delete|bench [flags]; kvstore help says what they do")

const help = `usage:
  kvstore keys DIR TENANT...        makes a master key for the servers, and a key for each tenant
  kvstore serve [flags]             is one of two replicas; with -backup, the primary
  kvstore get [flags] KEY           prints the value of a key
  kvstore put [flags] KEY VALUE     stores a value, which is durable at both replicas
  kvstore delete [flags] KEY        deletes a key
  kvstore bench [flags]             measures Gets against requests over TCP

kvstore COMMAND -h lists the flags of a command.
`

const (
	defaultPrimary = "127.0.0.1:7481"
	defaultBackup  = "127.0.0.1:7482"
)

// options holds the options of all subcommands.
type options struct {
	addr, file, master, tenants string
	buckets                     uint
	values, half                uint64
	rekey                       time.Duration

	primary, backup, tenant, key string
	timeout                      time.Duration

	keys, depth, pairs int
	span               time.Duration

	args []string // the arguments after the flags
}

// flags returns the flags of one subcommand.
func (o *options) flags(name string, out io.Writer) (*flag.FlagSet, error) {
	fs := flag.NewFlagSet("kvstore "+name, flag.ContinueOnError)
	fs.SetOutput(out)
	switch name {
	case "keys":
	case "serve":
		fs.StringVar(&o.addr, "addr", defaultBackup, "`ADDRESS` to listen on, host:port")
		fs.StringVar(&o.backup, "backup", "", "be the primary, of the backup at that `ADDRESS`")
		fs.StringVar(&o.file, "file", "", "the durable `FILE`, which is made if it is not there")
		fs.StringVar(&o.master, "master", masterFile, "`FILE` with the master key")
		fs.StringVar(&o.tenants, "tenants", "tenant", "`NAMES` of tenants, with commas between them")
		fs.UintVar(&o.buckets, "buckets", 1<<14, "buckets of a tenant, of 64 octets and four keys: a power of two, the one that the file was made with")
		fs.Uint64Var(&o.values, "values", 64<<20, "octets for the values of a tenant")
		fs.Uint64Var(&o.half, "log-half", 64<<20, "octets of half of the log, as many as the file was made with")
		fs.DurationVar(&o.rekey, "rekey", time.Minute, "replace the keys of regions that often; 0: never")
	case "get", "put", "delete":
		fs.StringVar(&o.primary, "primary", defaultPrimary, "`ADDRESS` of the primary, host:port")
		fs.StringVar(&o.backup, "backup", defaultBackup, "`ADDRESS` of the backup, host:port")
		fs.StringVar(&o.tenant, "tenant", "tenant", "`NAME` of the tenant")
		fs.StringVar(&o.key, "key", "", "`FILE` with the key of the tenant; empty: NAME.key")
		fs.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long that may take")
	case "bench", "benchserver":
		fs.IntVar(&o.keys, "keys", 10_000, "keys in the store, 1 to 1048576")
		fs.IntVar(&o.depth, "depth", 128, "Gets under way, 1 to 128")
		fs.IntVar(&o.pairs, "pairs", 9, "runs of each way, in turn")
		fs.DurationVar(&o.span, "span", 200*time.Millisecond, "about how long a run takes")
	default:
		return nil, errUsage
	}
	return fs, nil
}

func run(ctx context.Context, args []string, in io.Reader, out, diag io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	if program.AsksForHelp(args[0]) {
		_, err := io.WriteString(out, help)
		return err
	}
	var o options
	fs, err := o.flags(args[0], out)
	if err != nil {
		return err
	}
	if err := fs.Parse(args[1:]); err != nil {
		return program.Called(err)
	}
	o.args = fs.Args()
	switch args[0] {
	case "keys":
		return makeKeys(o.args, out)
	case "serve":
		return serve(ctx, &o, out, diag)
	case "get", "put", "delete":
		return ask(ctx, args[0], &o, out)
	}
	if err := o.checkBench(); err != nil {
		return err
	}
	if args[0] == "bench" {
		return runBench(ctx, &o, out)
	}
	return benchServe(ctx, &o, in, out)
}

func (o *options) checkBench() error {
	if o.keys < 1 || o.keys > maxBenchKeys || o.pairs < 1 || o.span <= 0 || o.depth < 1 || o.depth > 128 || len(o.args) > 0 {
		return program.UsageError("bench needs -keys, -pairs and -span of more than 0, up to 1048576 keys, and a -depth of 1 to 128")
	}
	return nil
}
