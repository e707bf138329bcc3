package dump_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/dump"
)

// fields are tshark's fields, with the Decoder's equivalent.
var fields = []struct {
	name string
	of   func(r *dump.Record) (any, bool)
}{
	{"iwarp_mpa.rev", func(r *dump.Record) (any, bool) { return setup(r).Revision, r.Setup != nil }},
	{"iwarp_mpa.pdlength", func(r *dump.Record) (any, bool) { return setup(r).Length, r.Setup != nil }},
	{"iwarp_mpa.marker_flag", func(r *dump.Record) (any, bool) { return setup(r).Markers, r.Setup != nil }},
	{"iwarp_mpa.crc_flag", func(r *dump.Record) (any, bool) { return setup(r).CRC, r.Setup != nil }},
	{"iwarp_mpa.rej_flag", func(r *dump.Record) (any, bool) { return setup(r).Reject, r.Setup != nil }},
	{"iwarp_mpa.ulpdulength", func(r *dump.Record) (any, bool) {
		if r.MPA == nil {
			return 0, false
		}
		return r.MPA.Length, true
	}},
	{"iwarp_ddp.dv", func(r *dump.Record) (any, bool) { return header(r).Version, r.DDP != nil }},
	{"iwarp_ddp.tagged_flag", func(r *dump.Record) (any, bool) { return header(r).Tagged, r.DDP != nil }},
	{"iwarp_ddp.last_flag", func(r *dump.Record) (any, bool) { return header(r).Last, r.DDP != nil }},
	{"iwarp_ddp.stag", func(r *dump.Record) (any, bool) { return string(header(r).STag), header(r).Tagged }},
	{"iwarp_ddp.tagged_offset", func(r *dump.Record) (any, bool) {
		if !header(r).Tagged {
			return 0, false
		}
		return string(*r.DDP.TO), true
	}},
	{"iwarp_ddp.qn", untagged(func(d *dump.DDP) uint32 { return *d.QN })},
	{"iwarp_ddp.msn", untagged(func(d *dump.DDP) uint32 { return *d.MSN })},
	{"iwarp_ddp.mo", untagged(func(d *dump.DDP) uint32 { return *d.MO })},
	{"iwarp_rdma.version", func(r *dump.Record) (any, bool) { return rdmapOf(r).Version, r.RDMAP != nil }},
	{"iwarp_rdma.opcode", func(r *dump.Record) (any, bool) { return rdmapOf(r).Opcode, r.RDMAP != nil }},
	{"iwarp_rdma.inval_stag", func(r *dump.Record) (any, bool) { return string(rdmapOf(r).Invalidate), rdmapOf(r).Invalidate != "" }},
	{"iwarp_rdma.sinkstag", readField("sink_stag")},
	{"iwarp_rdma.sinkto", readField("sink_to")},
	{"iwarp_rdma.rdmardsz", readField("size")},
	{"iwarp_rdma.srcstag", readField("source_stag")},
	{"iwarp_rdma.srcto", readField("source_to")},
}

func setup(r *dump.Record) dump.Setup {
	if r.Setup == nil {
		return dump.Setup{}
	}
	return *r.Setup
}

func header(r *dump.Record) dump.DDP {
	if r.DDP == nil {
		return dump.DDP{}
	}
	return *r.DDP
}

func rdmapOf(r *dump.Record) dump.RDMAP {
	if r.RDMAP == nil {
		return dump.RDMAP{}
	}
	return *r.RDMAP
}

func untagged(f func(*dump.DDP) uint32) func(*dump.Record) (any, bool) {
	return func(r *dump.Record) (any, bool) {
		if r.DDP == nil || r.DDP.Tagged {
			return 0, false
		}
		return f(r.DDP), true
	}
}

// readField returns a field of a Read Request.
func readField(name string) func(*dump.Record) (any, bool) {
	return func(r *dump.Record) (any, bool) {
		if rdmapOf(r).Opcode != 1 {
			return nil, false
		}
		for _, f := range r.RDMAP.Fields {
			if f.Name == name {
				return f.Value, true
			}
		}
		return nil, false
	}
}

// canonical returns a value in one form: tshark prints some values in hexadecimal.
func canonical(v string) string {
	switch v {
	case "true", "True":
		return "1"
	case "false", "False":
		return "0"
	}
	if n, err := strconv.ParseUint(v, 0, 64); err == nil {
		return fmt.Sprint(n)
	}
	return v
}

// values holds the values of each field, for each direction of each connection, in order.
type values map[string][]string

func (v values) add(direction, field, value string) {
	k := direction + " " + field
	v[k] = append(v[k], canonical(value))
}

// TestTsharkAgrees compares every header of every capture, field by field.
func TestTsharkAgrees(t *testing.T) {
	path, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("IWARP_REQUIRE_TOOLS") == "1" {
			t.Fatalf("tshark is required and missing: %v", err)
		}
		t.Skipf("needs tshark: %v", err)
	}
	files, err := filepath.Glob(filepath.Join("..", "pcap", "testdata", "*.pcap"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			want := ask(t, path, file)
			got, gaps := ours(t, file)
			require.NotEmpty(t, want)
			for k, w := range want {
				g := got[k]
				if direction, _, _ := strings.Cut(k, " "); gaps[direction] && len(g) < len(w) {
					w = w[:len(g)] // tshark takes the next TCP segment for the beginning of an FPDU
				}
				require.Equal(t, w, g, k)
			}
			for k := range got {
				require.Contains(t, want, k)
			}
		})
	}
}

// ask returns what tshark decodes of a capture. Protocols that it would recognise in Sends are disabled.
func ask(t *testing.T, tshark, file string) values {
	args := []string{
		"-n", "-r", file, "-o", "tcp.try_heuristic_first:TRUE", "-o", "tcp.reassemble_out_of_order:TRUE", "-o", "gui.max_tree_depth:1000000",
		"--disable-protocol", "rpcordma", "--disable-protocol", "nvme-tcp", "-Y", "iwarp_mpa", "-T", "fields", "-E", "aggregator=,",
		"-e", "ip.src", "-e", "tcp.srcport", "-e", "ip.dst", "-e", "tcp.dstport",
	}
	for _, f := range fields {
		args = append(args, "-e", f.name)
	}
	out, err := exec.Command(tshark, args...).Output()
	require.NoError(t, err)
	v := values{}
	for line := range strings.Lines(string(out)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, columns, 4+len(fields))
		direction := columns[0] + ":" + columns[1] + ">" + columns[2] + ":" + columns[3]
		for i, f := range fields {
			for _, value := range strings.FieldsFunc(columns[4+i], func(r rune) bool { return r == ',' }) {
				v.add(direction, f.name, value)
			}
		}
	}
	return v
}

// ours returns the Decoder's values, and the directions that have gaps.
func ours(t *testing.T, file string) (values, map[string]bool) {
	v, gaps := values{}, map[string]bool{}
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, dump.Capture(f, dump.Config{}, func(records []dump.Record) error {
		for i := range records {
			r := &records[i]
			direction := r.Src + ">" + r.Dst
			if r.Kind == dump.KindGap {
				gaps[direction] = true
			}
			for _, x := range fields {
				if value, ok := x.of(r); ok {
					v.add(direction, x.name, fmt.Sprint(value))
				}
			}
		}
		return nil
	}))
	return v, gaps
}
