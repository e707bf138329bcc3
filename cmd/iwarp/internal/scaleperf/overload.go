package scaleperf

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// Of the overload.
const (
	leastMemory = 64 // MiB
	loadBlock   = 64 * kib
	qpMemory    = 16 * kib // of a queue pair, with all that belongs to it
	loadSpans   = 50       // how many times --time the load writes
	leastBack   = 0.95     // part of the earlier throughput
)

// room returns how many queue pairs of the load fit into half of the memory. The other half is for connections in set-up, and for
// garbage.
func (o *options) room() int { return o.memory * mib / 2 / (loadBlock + qpMemory) }

// overload loads a server whose memory is limited.
func (b *bench) overload() error {
	n := b.possible(b.opts.load)
	if n < 1 {
		return errNone()
	}
	var servers [2]*node
	var addrs [2][]string
	var err error
	if b.group, err = b.opts.newCgroup(); err != nil {
		return err
	}
	for i, limit := range []int{b.opts.memory, 0} {
		var args []string
		if limit > 0 {
			args = b.group.flags()
		}
		if servers[i], err = b.start(kindQP, limit, args...); err != nil {
			return err
		}
		o := &listenOrder{Addrs: 1 + (n-1)/perAddr, MaxQP: b.opts.room(), Block: loadBlock}
		r, err := servers[i].do(order{Files: uint64(n + spareFiles), Listen: o})
		if err != nil {
			return err
		}
		addrs[i] = r.Addrs
	}
	writer, err := b.start(kindQP, 0)
	if err != nil {
		return err
	}
	before, err := b.throughput(writer, addrs[0][0], addrs[1][0])
	if err != nil {
		return err
	}
	if err := b.loaded(servers[0], addrs[0], n); err != nil {
		return err
	}
	if err := b.sleep(b.opts.after); err != nil {
		return err
	}
	after, err := b.throughput(writer, addrs[0][0], addrs[1][0])
	if err != nil {
		return fmt.Errorf("after the load: %w", err)
	}
	b.Note("writes of 1 MiB with CRC, against a server without a load: %.2f before, %.2f %v after the load", before, after, b.opts.after)
	b.Marks.Least("overload: throughput after it against before", after/before, leastBack)
	return b.stop()
}

// loaded applies the load to a server, ends it, and compares the results with the marks.
func (b *bench) loaded(s *node, addrs []string, n int) error {
	if _, err := s.do(order{Tally: true}); err != nil { // earlier connections do not count
		return err
	}
	client, err := b.start(kindQP, 0)
	if err != nil {
		return err
	}
	loadTime := loadSpans * b.opts.Span
	began := time.Now()
	theirs, err := client.do(order{Files: uint64(n + spareFiles), Load: &loadOrder{Addrs: addrs, N: n, Block: loadBlock, For: loadTime}})
	if err != nil {
		return err
	}
	took := time.Since(began) - loadTime
	ours, err := s.do(order{Tally: true})
	if err != nil {
		return fmt.Errorf("the server under the load: %w", err)
	}
	m, err := s.do(order{Memory: true})
	if err != nil {
		return fmt.Errorf("the server under the load: %w", err)
	}
	if _, err := client.do(order{Leave: true}); err != nil {
		return err
	}
	if err := client.remote.Close(); err != nil {
		return err
	}
	client.remote = peer.Remote{}
	b.Note("overload: %d connections in %.1f s, %d accepted and %d refused, in %d attempts (%s), which their client sees as: %s; %d writes of 64 KiB",
		n, took.Seconds(), theirs.Tally.Accepted, theirs.Tally.Failed, ours.Tally.Limited, ours.Tally.Error, theirs.Tally.Error, theirs.Tally.Writes)
	b.Marks.Most("overload: resident memory at most", m.Memory.Peak/mib, float64(b.opts.memory), " MiB")
	b.Marks.Most("overload: connections that were refused without ErrLimit", float64(ours.Tally.Failed+max(theirs.Tally.Failed-ours.Tally.Limited, 0)), 0, "")
	b.Marks.Most("overload: writes that failed on accepted connections", float64(theirs.Tally.Broken), 0, "")
	return nil
}

// throughput returns the ratio of the throughput of a server to that of another server.
func (b *bench) throughput(writer *node, addr, other string) (float64, error) {
	to := func(name, addr string) *contest.Contender {
		return &contest.Contender{Name: name, Size: writeLen, Run: func(n int) error {
			_, err := writer.do(order{Write: &writeOrder{Addr: addr, N: n}})
			return err
		}}
	}
	x := &contest.Contest{Pairs: b.opts.Pairs, Span: b.opts.Span, Usage: func() (peer.Usage, error) { return peer.Usage{}, nil }}
	loaded, quiet := to("loaded", addr), to("quiet", other)
	err := x.Compare(loaded, quiet)
	return loaded.Against(quiet, contest.Rate), err
}
