// Command guest runs the cases of the interop lab inside the virtual machine. It reads
// its job from the shared folder and writes a line for every case there. With arguments
// it is the other end of a case:
//
//	guest serve NETWORK ADDRESS          a server of this library
//	guest nvme-host SCRIPT ADDRESS NQN CRC   an NVMe host
//	guest nfs-client ADDRESS HANDLE CRC  an NFS client
//	guest plain-sctp listen|dial ADDRESS   SCTP without DDP
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/interop/matrix"
	"github.com/goiwarp/iwarp/interop/nfsclient"
	"github.com/goiwarp/iwarp/interop/nvmehost"
	"github.com/goiwarp/iwarp/interop/pace"
)

const share = "/host"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Println("guest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return work(ctx)
	case len(args) == 3 && args[0] == "serve":
		return matrix.Serve(ctx, args[1], args[2], os.Stdout)
	case len(args) == 3 && args[0] == "plain-sctp":
		return matrix.PlainSCTP(args[1] == "dial", args[2], os.Stdout)
	case len(args) == 5 && args[0] == "nvme-host":
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
		return nvmehost.Run(ctx, args[1], &nvmehost.Job{Addr: args[2], SubNQN: args[3], NoCRC: args[4] == "false", HostNQN: matrix.HostNQN, Say: os.Stdout})
	case len(args) == 4 && args[0] == "nfs-client":
		return nfsclient.Run(ctx, &nfsclient.Job{Addr: args[1], Root: args[2], NoCRC: args[3] == "false", Say: os.Stdout})
	}
	return fmt.Errorf("unexpected arguments: %q", args)
}

func work(ctx context.Context) error {
	b, err := os.ReadFile(filepath.Join(share, "job.json"))
	if err != nil {
		return err
	}
	var job matrix.Job
	if err := json.Unmarshal(b, &job); err != nil {
		return err
	}
	if err := loadModules(job.Variant); err != nil {
		return err
	}
	table := matrix.TableOf(job.Table)
	if table == nil {
		return fmt.Errorf("there are no cases %q", job.Table)
	}
	if err := table.SetUp(); err != nil {
		return err
	}
	results, err := os.Create(filepath.Join(share, "results"))
	if err != nil {
		return err
	}
	defer results.Close() //nolint:errcheck // every line was written by a checked Encode
	out, gauge := json.NewEncoder(results), pace.OfMachine()
	for i := range table.Cases {
		c := &table.Cases[i]
		if !slices.Contains(job.Cases, c.Name) {
			continue
		}
		if err := out.Encode(matrix.Result{Name: c.Name}); err != nil {
			return err
		}
		if err := out.Encode(matrix.Run(ctx, gauge, c, filepath.Join(share, "cases", c.Name))); err != nil {
			return err
		}
	}
	return kernelLog()
}

// loadModules loads the siw variant that the job requests, and the modules that it needs.
func loadModules(variant string) error {
	for _, args := range [][]string{
		{"modprobe", "-a", "veth", "af_packet", "libcrc32c", "crc32c_generic", "ib_core", "iw_cm", "ib_uverbs", "rdma_cm", "rdma_ucm"},
		{"insmod", "/lib/siw/" + variant + ".ko"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// kernelLog writes the kernel's log to the shared folder.
func kernelLog() error {
	out, err := exec.Command("dmesg").Output()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(share, "dmesg"), out, 0o644)
}
