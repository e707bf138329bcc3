package perf

import "time"

// A measurement is a subject, its baseline and the cases that are read off them.
type measurement struct {
	subject, baseline workload
	goals             []goal
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// bulk is a measurement of large operations against TCP that streams through as much
// memory.
func bulk(op string, region int, crc bool, goals ...goal) measurement {
	w := workload{Kind: "iwarp", Op: op, Size: min(region, mib), Region: region, Depth: 8, CRC: crc}
	b := w
	b.Kind = "tcp"
	return measurement{w, b, goals}
}

// small is a measurement of 4 KiB at depth 32, against TCP with 32 messages a call.
func small(op string, goals ...goal) measurement {
	w := workload{Kind: "iwarp", Op: op, Size: 4 * kib, Depth: 32}
	b := w
	b.Kind, b.Chunk = "tcp", 32*4*kib
	return measurement{w, b, goals}
}

// latency is a measurement of operations one after the other. The baseline sleeps
// where it waits, as Go's TCP does.
func latency(op string, size int, poll time.Duration, goals ...goal) measurement {
	w := workload{Kind: "iwarp", Op: op, Size: size, Latency: true, Poll: poll}
	b := w
	b.Kind = "tcp"
	return measurement{w, b, goals}
}

// blocks is a measurement of 1 MiB Reads, one after the other, against another way to
// fetch a block. None of them has a digest.
func blocks(kind string, g goal) measurement {
	w := workload{Kind: "iwarp", Op: opRead, Size: mib}
	b := w
	b.Kind = kind
	return measurement{w, b, []goal{g}}
}

// sends is a measurement of small messages, batched as an application that has many of
// them would, against TCP with a call for each.
func sends(g goal) measurement {
	w := workload{Kind: "iwarp", Op: opSend, Size: 64, Depth: 1024, Batch: 256, Moderate: true, CRC: true}
	b := w
	b.Kind, b.Chunk = "tcp", 64
	return measurement{w, b, []goal{g}}
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
	latency(opPingPong, 64, 0, ratioAtMost("pingpong_64b", p50, 1.12)),
	latency(opPingPong, 64, busyPoll, ratioAtMost("pingpong_64b_poll", p50, 0.75)),
	latency(opRead, 4*kib, 0, ratioAtMost("read_4k_latency", p50, 1.25)),
	blocks("http", ratioAtLeast("read_1m_http", throughput, 1.4)),
	blocks("grpc", ratioAtLeast("read_1m_grpc", throughput, 3.5)),
}
