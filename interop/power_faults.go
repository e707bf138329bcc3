package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/interop/nbd"
	"github.com/goiwarp/iwarp/interop/powercut"
)

// A faultyDisk fails as the marks in the data written to it say.
type faultyDisk struct {
	*nbd.Disk
	mu    sync.Mutex
	armed bool // the next Flush fails
	seal  bool // further writes fail
}

func (d *faultyDisk) WriteAt(p []byte, off int64, through bool) error {
	if bytes.Contains(p, []byte(powercut.FailWrite)) {
		return syscall.EIO
	}
	d.mu.Lock()
	d.armed = d.armed || bytes.Contains(p, []byte(powercut.FailFlush))
	d.seal = d.seal || bytes.Contains(p, []byte(powercut.Seal))
	seal := d.seal
	d.mu.Unlock()
	if seal {
		return syscall.EPERM
	}
	return d.Disk.WriteAt(p, off, through)
}

func (d *faultyDisk) Flush() error {
	d.mu.Lock()
	fail := d.armed
	d.armed = false
	d.mu.Unlock()
	if fail {
		return syscall.EIO
	}
	return d.Disk.Flush()
}

const (
	faultsLimit = 3 * time.Minute
	pmemOctets  = 64 << 20
)

// runFaults boots one machine, in which every case has its own disk, and prints the
// outcomes.
func (p *power) runFaults(ctx context.Context) error {
	if err := p.buildInitramfs(ctx, faultModules); err != nil {
		return err
	}
	pmem := filepath.Join(p.out, "pmem")
	if err := errors.Join(os.WriteFile(pmem, nil, 0o600), os.Truncate(pmem, pmemOctets)); err != nil {
		return err
	}
	q := &slimVM{
		image: p.image, initramfs: p.initramfs, accel: p.accel, console: filepath.Join(p.out, "console-faults"),
		args: "-faults",
		more: []string{
			"-machine", "pc,nvdimm=on", "-m", "256,slots=1,maxmem=1G",
			"-object", fmt.Sprintf("memory-backend-file,id=pmem,share=on,mem-path=%s,size=%d", pmem, pmemOctets),
			"-device", "nvdimm,id=nvdimm,memdev=pmem",
		},
	}
	for range powercut.Faults {
		q.disks = append(q.disks, &faultyDisk{Disk: nbd.NewDisk(bytes.Clone(p.empty), p.seed)})
	}
	ctx, cancel := p.pace.Context(ctx, faultsLimit, fmt.Errorf("the machine ran for more than %v", faultsLimit))
	defer cancel()
	over, err := q.start(ctx)
	if err != nil {
		return err
	}
	defer q.kill()
	<-over.Done()
	return p.reportFaults(q.console, pmem, ctx.Err())
}

// reportFaults prints the outcomes of the cases, according to the console.
func (p *power) reportFaults(console, pmem string, end error) error {
	said, err := os.ReadFile(console)
	if err != nil {
		return err
	}
	results := faultResults(string(said))
	memory, err := os.ReadFile(pmem)
	if err != nil {
		return err
	}
	if !bytes.Contains(memory, []byte(powercut.InPMem)) && results["pmem"] == "passed" {
		results["pmem"] = "FAILED: the record is not in the memory of the NVDIMM"
	}
	failed := 0
	for _, name := range powercut.Faults {
		verdict, ok := results[name]
		if !ok {
			verdict = "FAILED: it did not end (see " + console + ")"
		}
		if verdict != "passed" {
			failed++
		}
		fmt.Printf("%-18s %s\n", name, verdict)
	}
	fmt.Printf("%d passed, %d failed\n", len(powercut.Faults)-failed, failed)
	if failed > 0 {
		return errors.Join(errors.New("cases of failing disks have failed"), end)
	}
	return nil
}

// faultResults finds the outcome of each case in the output of a console.
func faultResults(said string) map[string]string {
	results := make(map[string]string)
	for line := range strings.Lines(said) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), powercut.Sign+" case "); ok {
			name, verdict, _ := strings.Cut(rest, " ")
			results[name] = verdict
		}
	}
	return results
}
