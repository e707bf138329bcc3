package scaleperf

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// Bounds of a set of connections.
const (
	maxQPs     = 1 << 20
	perAddr    = 10000 // connections of one address, fewer than its ports for another address
	spareFiles = 256   // descriptors besides those of the connections: a connection in set-up has two for a moment
	window     = 64    // set-ups that are in progress at a time
	warmUp     = 512   // connections before any is counted. With more set-ups at a time they fill all pools
	blocks     = 10    // in which the others are set up
)

// Marks of queue pairs.
const (
	mostMemory = 8 // KiB of a queue pair
	mostP99    = 1.2
)

// idle measures each number of connections.
func (b *bench) idle() error {
	for i, n := range b.opts.qps {
		if err := b.many(n, i == len(b.opts.qps)-1); err != nil {
			return fmt.Errorf("%d connections: %w", n, err)
		}
	}
	return nil
}

// A set holds the connections of one kind, in two processes.
type set struct {
	client, server *node
	addrs          []string
	before, after  [2]*memory
	rates          []float64  // of blocks, per second
	alone, beside  []*latency // of the busy connection, before the others exist and beside them
}

// possible returns n, or the number of connections that are possible if that is less.
func (b *bench) possible(n int) int {
	need := uint64(n + warmUp + spareFiles)
	have := b.files(need)
	if have >= need {
		return n
	}
	most := int(have) - warmUp - spareFiles
	b.Note("%d queue pairs need %d descriptors in each process. %s. Measured with %d.", n, need, peer.FilesBound(), most)
	return most
}

// errNone returns the error of a measurement without a connection.
func errNone() error { return fmt.Errorf("not even one is possible: %s", peer.FilesBound()) }

// many measures n connections of each kind.
func (b *bench) many(n int, last bool) (err error) {
	if n = b.possible(n); n < 1 {
		return errNone()
	}
	var all sets
	for i, kind := range []string{kindQP, kindTCP} {
		if all[i], err = b.gathers(kind, n, last); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	for _, step := range []func() error{
		func() error { return b.talk(all, func(c *set) *[]*latency { return &c.alone }) },
		func() error { return all.each((*set).warms) },
		func() error { return b.settle(n) },
		func() error { return all.each(func(c *set) (err error) { c.before, err = c.memories(); return err }) },
		func() error { return all.grow(n) },
		func() error { return b.settle(n) },
		func() error { return all.each(func(c *set) (err error) { c.after, err = c.memories(); return err }) },
		func() error { return b.heapProfiles(all[0], last) },
		func() error { return b.talk(all, func(c *set) *[]*latency { return &c.beside }) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	b.report(n, all[0], all[1])
	return errors.Join(b.scrapes(n, all[0]), b.stop())
}

// sets are the set of queue pairs and the set of TCP connections.
type sets [2]*set

func (all sets) each(f func(*set) error) error {
	for _, c := range all {
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// grow sets up n connections of each, in turn.
func (all sets) grow(n int) error {
	for i := range blocks {
		err := all.each(func(c *set) error { return c.grows(n*(i+1)/blocks-n*i/blocks, window) })
		if err != nil {
			return err
		}
	}
	return nil
}

// heapProfiles writes heap profiles, if last is set and the options request them.
func (b *bench) heapProfiles(c *set, last bool) error {
	if !last || b.opts.heap == "" {
		return nil
	}
	_, cerr := c.client.do(order{Heap: b.opts.heap + ".client"})
	_, serr := c.server.do(order{Heap: b.opts.heap + ".server"})
	return errors.Join(cerr, serr)
}

// settle waits until initiators have done their work some time after the set-up, if that matters.
func (b *bench) settle(n int) error {
	const counts, settled = 256, 1500 * time.Millisecond
	if n < counts {
		return nil
	}
	return b.sleep(settled)
}

// sleep sleeps, unless the command is interrupted.
func (b *bench) sleep(d time.Duration) error {
	select {
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// gathers starts the processes of a set, with the busy connection.
func (b *bench) gathers(kind string, n int, last bool) (c *set, err error) {
	c = new(set)
	var args []string
	if last && b.opts.heap != "" && kind == kindQP {
		args = []string{"--heapprofile", b.opts.heap}
	}
	if c.server, err = b.start(kind, 0, args...); err != nil {
		return nil, err
	}
	if c.client, err = b.start(kind, 0, args...); err != nil {
		return nil, err
	}
	files := uint64(n + warmUp + spareFiles)
	r, err := c.server.do(order{Files: files, Listen: &listenOrder{Addrs: 1 + (n-1)/perAddr, MaxQP: maxQPs}})
	if err != nil {
		return nil, err
	}
	c.addrs = r.Addrs
	_, err = c.client.do(order{Files: files, Busy: c.addrs[0]})
	return c, err
}

// warms sets up the connections that do not count.
func (c *set) warms() error {
	err := c.grows(warmUp, 2*window)
	c.rates = nil
	return err
}

// grows sets up n more connections.
func (c *set) grows(n, atATime int) error {
	if n == 0 {
		return nil
	}
	r, err := c.client.do(order{Dial: &dialOrder{Addrs: c.addrs, N: n, Window: atATime}})
	c.rates = append(c.rates, float64(n)/max(r.Elapsed.Seconds(), 1e-9))
	return err
}

func (c *set) memories() (m [2]*memory, err error) {
	for i, n := range []*node{c.client, c.server} {
		r, err := n.do(order{Memory: true})
		if err != nil {
			return m, err
		}
		m[i] = r.Memory
	}
	return m, nil
}

// talk makes the busy connections exchange messages, in turn.
func (b *bench) talk(all sets, into func(*set) *[]*latency) error {
	for i := range b.opts.Pairs + 1 {
		for _, c := range all {
			r, err := c.client.do(order{Talk: b.opts.Span})
			if err != nil {
				return err
			}
			if l := into(c); i > 0 { // the first run warms up
				*l = append(*l, r.Talk)
			}
		}
	}
	return nil
}

// kibOf returns what each of n connections takes, in KiB, in the process in which that is more.
func (c *set) kibOf(n int, value func(*memory) float64) (most float64) {
	for i, m := range c.after {
		most = max(most, (value(m)-value(c.before[i]))/kib/float64(n))
	}
	return most
}

func median(l []*latency, value func(*latency) time.Duration) float64 {
	var all []float64
	for _, t := range l {
		all = append(all, micros(value(t)))
	}
	return stats.Median(all)
}

// against returns the median of the ratios of pairs.
func against(l, base []*latency, value func(*latency) time.Duration) float64 {
	var all []float64
	for i, t := range l {
		all = append(all, micros(value(t))/max(micros(value(base[i])), 1e-3))
	}
	return stats.Median(all)
}

// Values of a run, and of a process.
func p50(l *latency) time.Duration  { return l.P50 }
func p99(l *latency) time.Duration  { return l.P99 }
func p999(l *latency) time.Duration { return l.P999 }
func heapOf(m *memory) float64      { return m.Heap }
func rssOf(m *memory) float64       { return m.RSS }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// report compares the results with n connections with the marks.
func (b *bench) report(n int, q, t *set) {
	name := fmt.Sprintf("%d queue pairs: ", n)
	b.Marks.Most(name+"heap and stacks of one", q.kibOf(n, heapOf), mostMemory, " KiB")
	b.Marks.Most(name+"resident memory of one", q.kibOf(n, rssOf), mostMemory, " KiB")
	b.Marks.Most(name+"p99 of a busy one against TCP", against(q.beside, t.beside, p99), mostP99, "")
	var rates []float64
	for i, r := range q.rates {
		rates = append(rates, r/t.rates[i])
	}
	b.Note("%d connections, queue pairs and TCP: heap of one %.1f and %.1f KiB, resident %.1f and %.1f KiB; %.0f and %.0f set up in a second, ratio %.2f",
		n, q.kibOf(n, heapOf), t.kibOf(n, heapOf), q.kibOf(n, rssOf), t.kibOf(n, rssOf), stats.Median(q.rates), stats.Median(t.rates), stats.Median(rates))
	for _, v := range []struct {
		name string
		of   func(*latency) time.Duration
	}{{"p50", p50}, {"p99", p99}, {"p99.9", p999}} {
		b.Note("%d connections, queue pairs and TCP: %s of 64 octets to and fro %.1f and %.1f us, ratio %.2f; without the others %.2f",
			n, v.name, median(q.beside, v.of), median(t.beside, v.of), against(q.beside, t.beside, v.of), against(q.alone, t.alone, v.of))
	}
}
