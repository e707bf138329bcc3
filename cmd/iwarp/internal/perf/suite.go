package perf

import (
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
)

// A measurement yields one or more cases of the suite.
type measurement interface {
	// cases returns the goals of the measurement.
	cases() []goal
	// measure returns one row for each of the cases, in their order.
	measure(p pairing, r *remote, cc string) ([]row, error)
}

// A comparison is a subject, its baseline, and the cases that are judged by them.
type comparison struct {
	subject, baseline workload
	against           string // the name of the baseline
	goals             []goal
	span              time.Duration // of a run at most, 0: as the flags say
}

// compared names the baseline by its kind.
func compared(subject, baseline workload, goals []goal) *comparison {
	return &comparison{subject: subject, baseline: baseline, against: baseline.Kind, goals: goals}
}

// cases returns the goals, and the goal that the subject does not allocate.
func (c *comparison) cases() []goal {
	return append(c.goals[:len(c.goals):len(c.goals)], valueAtMost("allocs_"+c.goals[0].name, allocs, noAllocs))
}

// noAllocs is the most that counts as no allocation per operation: the rest comes from the
// runtime, for example the refilling of a pool after a collection.
const noAllocs = 0.005

func (c *comparison) measure(p pairing, r *remote, cc string) ([]row, error) {
	subject, baseline := c.subject, c.baseline
	subject.CC, baseline.CC = cc, cc
	if c.span > 0 {
		p.span = min(p.span, c.span)
	}
	pairs, err := p.compare(r, subject, &baseline)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, g := range c.cases() {
		rows = append(rows, summarize(g.name, g.metric, c.against, pairs))
	}
	return rows, nil
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// bulk returns a measurement of large operations against TCP that streams through the same
// amount of memory.
func bulk(op string, region int, crc bool, goals ...goal) measurement {
	w := bulkOf(op, region, crc)
	b := w
	b.Kind = "tcp"
	return compared(w, b, goals)
}

func bulkOf(op string, region int, crc bool) workload {
	return workload{Kind: "iwarp", Op: op, Size: min(region, mib), Region: region, Shared: true, Depth: 8, CRC: crc}
}

// small returns a measurement of 4 KiB at depth 32, against TCP with 32 messages a call.
func small(op string, goals ...goal) measurement {
	w := smallOf(op)
	b := w
	b.Kind, b.Chunk = "tcp", 32*4*kib
	return compared(w, b, goals)
}

func smallOf(op string) workload {
	return workload{Kind: "iwarp", Op: op, Size: 4 * kib, Shared: true, Depth: 32}
}

// latency returns a measurement of operations one after the other. The baseline sleeps
// while it waits, as Go's TCP does.
func latency(op string, size int, poll time.Duration, goals ...goal) measurement {
	w := latencyOf(op, size, poll)
	b := w
	b.Kind = "tcp"
	return compared(w, b, goals)
}

func latencyOf(op string, size int, poll time.Duration) workload {
	return workload{Kind: "iwarp", Op: op, Size: size, Latency: true, Poll: poll}
}

// authenticated returns a measurement of w on a connection whose sides have authenticated each other,
// against w without authentication.
func authenticated(w workload, g goal) measurement {
	b := w
	w.Auth = authmode.B
	return &comparison{subject: w, baseline: b, against: alone, goals: []goal{g}}
}

// solicited returns a measurement of w with a Solicitor that never makes it wait, against w without a Solicitor.
func solicited(w workload, g goal) measurement {
	b := w
	w.Window = 2 * int64(w.Depth) * int64(w.Size)
	return &comparison{subject: w, baseline: b, against: alone, goals: []goal{g}}
}

// blocked is like latency, but both sides sleep in the kernel.
func blocked(op string, size int, goals ...goal) measurement {
	w := workload{Kind: "iwarp", Op: op, Size: size, Latency: true, Wait: waitBlock}
	b := w
	b.Kind = "tcp"
	return compared(w, b, goals)
}

// blocks returns a measurement of 1 MiB Reads, one after the other, against another way to
// fetch a block. None of them has a digest.
func blocks(kind string, g goal) measurement {
	w := workload{Kind: "iwarp", Op: opRead, Size: mib}
	b := w
	b.Kind = kind
	return compared(w, b, []goal{g})
}

// sends returns a measurement of small messages, batched as an application that has many of
// them would, against TCP with a call for each.
func sends(g goal) measurement {
	w := workload{Kind: "iwarp", Op: opSend, Size: 64, Depth: 1024, Batch: 256, Moderate: true, CRC: true}
	b := w
	b.Kind, b.Chunk = "tcp", 64
	return compared(w, b, []goal{g})
}

// clients returns a measurement of one busy connection beside others that do a little,
// against the same connection alone.
func clients(n int, g goal) measurement {
	w := workload{Kind: "iwarp", Op: opRead, Size: mib, Shared: true, Depth: 8, CRC: true}
	b := w
	w.Slow = n
	return &comparison{subject: w, baseline: b, against: alone, goals: []goal{g}}
}

// reads returns a measurement of Reads against a program that does the same work with requests
// and answers. Neither has a digest.
func reads(size, depth int, shared bool, g goal) measurement {
	return requested(workload{Op: opRead, Size: size, Shared: shared, Depth: depth}, g)
}

// busy returns a measurement of connections that all have Reads outstanding, against as many
// connections of that program.
func busy(conns, size int, g goal) measurement {
	return requested(workload{Op: opRead, Size: size, Depth: 8, Conns: conns}, g)
}

// requested compares w with the same work done by requests and answers. There are many such
// measurements, and their runs are short.
func requested(w workload, g goal) measurement {
	b := w
	w.Kind, b.Kind = "iwarp", "reqresp"
	c := compared(w, b, []goal{g})
	c.span = 50 * time.Millisecond
	return c
}

// busyPoll is how long pingpong_64b_poll polls before it sleeps.
const busyPoll = 50 * time.Microsecond

// standard is the suite of that name.
var standard = []measurement{
	bulk(opRead, mib, false, ratioAtLeast("read_1m_nocrc", throughput, 0.92)),
	bulk(opWrite, mib, false, ratioAtLeast("write_1m_nocrc", throughput, 0.97), ratioAtMost("cpu_1m_nocrc", cpu, 1.15)),
	bulk(opWrite, mib, true, ratioAtLeast("write_1m_crc", throughput, 0.90), ratioAtMost("cpu_1m_crc", cpu, 1.35)),
	bulk(opRead, mib, true, ratioAtLeast("read_1m_crc", throughput, 0.82)),
	bulk(opRead, 64*mib, true, ratioAtLeast("read_64m_crc", throughput, 0.95)),
	bulk(opWrite, 64*mib, true, ratioAtLeast("write_64m_crc", throughput, 0.95)),
	small(opWrite, ratioAtLeast("write_4k_d32", throughput, 0.80)),
	small(opRead, ratioAtLeast("read_4k_d32", throughput, 0.80)),
	sends(ratioAtLeast("send_64b_batch", rate, 60)),
	latency(opPingPong, 64, 0, ratioAtMost("pingpong_64b", p50, 1.30)),
	blocked(opPingPong, 64, ratioAtMost("pingpong_64b_block", p50, 1.05),
		ratioAtLeast("pingpong_64b_block_rate", rate, 0.95), ratioAtMost("pingpong_64b_block_p99", p99, 1.1)),
	latency(opPingPong, 64, busyPoll, ratioAtMost("pingpong_64b_poll", p50, 0.75)),
	latency(opRead, 4*kib, 0, ratioAtMost("read_4k_latency", p50, 1.25)),
	blocks("http", ratioAtLeast("read_1m_http", throughput, 1.4)),
	blocks("grpc", ratioAtLeast("read_1m_grpc", throughput, 3.5)),
	reads(4*kib, 8, false, ratioAtLeast("read_4k_d8_reqresp", rate, 1)),
	reads(4*kib, 8, true, ratioAtLeast("read_4k_d8_shared_reqresp", rate, 1)),
	reads(4*kib, 32, false, ratioAtLeast("read_4k_d32_reqresp", rate, 1)),
	reads(4*kib, 32, true, ratioAtLeast("read_4k_d32_shared_reqresp", rate, 1)),
	reads(4*kib, 128, false, ratioAtLeast("read_4k_d128_reqresp", rate, 1)),
	reads(4*kib, 128, true, ratioAtLeast("read_4k_d128_shared_reqresp", rate, 1)),
	reads(16*kib, 8, false, ratioAtLeast("read_16k_d8_reqresp", rate, 1)),
	reads(16*kib, 8, true, ratioAtLeast("read_16k_d8_shared_reqresp", rate, 1)),
	reads(64*kib, 2, false, ratioAtLeast("read_64k_d2_reqresp", rate, 1)),
	reads(64*kib, 2, true, ratioAtLeast("read_64k_d2_shared_reqresp", rate, 1)),
	reads(64*kib, 8, false, ratioAtLeast("read_64k_d8_reqresp", rate, 1)),
	reads(64*kib, 8, true, ratioAtLeast("read_64k_d8_shared_reqresp", rate, 1)),
	busy(4, 4*kib, ratioAtLeast("busy_4_4k", rate, 0.95)),
	busy(16, 4*kib, ratioAtLeast("busy_16_4k", rate, 0.95)),
	busy(64, 4*kib, ratioAtLeast("busy_64_4k", rate, 0.95)),
	busy(4, 16*kib, ratioAtLeast("busy_4_16k", rate, 0.95)),
	busy(16, 16*kib, ratioAtLeast("busy_16_16k", rate, 0.95)),
	busy(64, 16*kib, ratioAtLeast("busy_64_16k", rate, 0.95)),
	authenticated(bulkOf(opWrite, mib, true), ratioAtLeast("write_1m_crc_auth", throughput, 0.99)),
	authenticated(latencyOf(opPingPong, 64, 0), ratioAtMost("pingpong_64b_auth", p50, 1/0.99)),
	solicited(smallOf(opRead), ratioAtLeast("read_4k_d32_solicited", rate, 0.97)),
	clients(256, ratioAtLeast("clients_256", throughput, 0.90)),
	&idleCase{idle: 10_000, rss: 8, ratio: 0.9},
	copiesCase{},
}
