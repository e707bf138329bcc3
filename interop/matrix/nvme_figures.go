package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// rounds is how often each target is measured.
const rounds = 3

// nvmeFigures runs the same fio job on our target and on Linux's, over RDMA and over TCP, in turns. One machine does all the
// work: if it is emulated, the figures say nothing about speed, and no case fails because of them.
func nvmeFigures() []Case {
	return []Case{watched(Case{
		Name: "nvme/figures", Role: Responder, Figures: true, NoCapture: true, Limit: 15 * time.Minute, Kernel: nvmetCloses,
		Run: func(t *T) { t.compareTargets() },
	})}
}

// compareTargets reports the medians of the rounds.
func (t *T) compareTargets() {
	t.tool("modprobe", "-a", "nvme_tcp", "nvmet_tcp")
	t.serveNVMe(true, "-backing", "mem:64MiB,bs=512")
	t.nvmet(t.nullBlock(512), "rdma", "tcp")
	t.Cleanup(func() { _ = t.command("nvme", "disconnect-all").Run() })
	targets := []struct{ name, transport, addr, port string }{
		{"ours", "rdma", OurIP, "4420"}, {"nvmet-rdma", "rdma", PeerIP, "4420"}, {"nvmet-tcp", "tcp", PeerIP, "4421"},
	}
	jobs := []struct{ rw, bs string }{{"randread", "4k"}, {"randwrite", "4k"}, {"read", "1m"}, {"write", "1m"}}
	figures := make(map[string][]float64)
	for range rounds {
		for _, g := range targets {
			t.cli("connect", "-t", g.transport, "-a", g.addr, "-s", g.port, "-n", nvmeSubsystem, "-q", HostNQN, "-I", nvmeHostID, "-i", "2", "-k", "60")
			disk := t.disk()
			for _, j := range jobs {
				said := t.tool("fio", "--name=figure", "--filename="+disk, "--rw="+j.rw, "--bs="+j.bs, "--numjobs=2", "--thread", "--group_reporting",
					"--ioengine=libaio", "--iodepth=16", "--direct=1", "--size=48m", "--time_based", "--runtime=3", "--output-format=json")
				iops, err := fioIOPS(said)
				require.NoError(t, err)
				key := g.name + " " + j.rw + " " + j.bs
				figures[key] = append(figures[key], iops)
			}
			t.disconnectLinux()
		}
	}
	for _, j := range jobs {
		var line []string
		for _, g := range targets {
			line = append(line, fmt.Sprintf("%s %.0f", g.name, median(figures[g.name+" "+j.rw+" "+j.bs])))
		}
		t.figure("%s %s: %s IOPS", j.rw, j.bs, strings.Join(line, ", "))
	}
}

// fioIOPS returns the reads and writes per second that fio reports as JSON.
func fioIOPS(said string) (iops float64, err error) {
	var report struct {
		Jobs []struct {
			Read, Write struct{ IOPS float64 }
		}
	}
	_, said, _ = strings.Cut("\n"+said, "\n{") // remarks may precede it
	if err := json.Unmarshal([]byte("{"+said), &report); err != nil {
		return 0, fmt.Errorf("fio's report: %w", err)
	}
	for _, j := range report.Jobs {
		iops += j.Read.IOPS + j.Write.IOPS
	}
	if iops == 0 {
		return 0, errors.New("fio reports no requests")
	}
	return iops, nil
}

// median returns the middle one of an odd number of figures.
func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/2]
}
