package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/metamorphic/program"
)

// rounds is how many rounds a run has.
const rounds = 5

// between is how many more goroutines and descriptors may be in use after a round than after the first one: the
// RNICs are not closed, and keep a bounded number for later use.
const between = 8

// A soak is one run.
type soak struct {
	o         options
	w         io.Writer
	networks  []string
	pairs     [2]*hostPair // raw sockets, and package net
	slots     *slots
	tally     program.Tally
	shared    sharedCounts
	datagrams datagrams
	findings  findings
	skipped   sync.Map // networks that the machine does not have
	sabotaged atomic.Bool
	jobs      int
	start     usage // before everything
	first     usage // after the first round
	last      usage // after the last one
	end       usage
}

func newSoak(w io.Writer, o options) *soak {
	return &soak{o: o, w: w, networks: strings.Split(o.networks, ","), slots: newSlots(o.qps - sharedQPs)}
}

// soak runs everything.
func (s *soak) soak() {
	s.start = measure()
	for i := range s.pairs {
		pair, err := openHosts(i == 1, s.o.qps, &s.datagrams)
		if err != nil {
			s.findings.add(err.Error())
			return
		}
		s.pairs[i] = pair
	}
	keep := s.sabotageSTag()
	seed := s.o.seed
	for i := 0; i < rounds && s.well(); i++ {
		seed = s.round(seed, i, s.o.length/rounds)
		s.afterRound(i)
	}
	if s.jobs == 0 && s.well() {
		s.findings.add("no program has run: -for is too short")
	}
	s.finish()
	keep()
}

func (s *soak) well() bool { return len(s.findings.all()) == 0 }

// round runs jobs for a time, from a seed on, and returns the next seed.
func (s *soak) round(seed uint64, number int, length time.Duration) uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { s.shareRegion(ctx, number) })
	for ; ctx.Err() == nil && s.well(); seed++ {
		j := draw(seed, s.networks)
		if !s.has(j.config.Network) {
			continue
		}
		s.slots.take(j.slots())
		s.jobs++
		all.Go(func() {
			defer s.slots.give(j.slots())
			s.run(j)
		})
	}
	if !s.well() {
		cancel()
	}
	all.Wait()
	return seed
}

// run runs a job.
func (s *soak) run(j job) {
	pair := s.pairs[0]
	if j.config.Plain {
		pair = s.pairs[1]
	}
	r := program.Runner{Hosts: (*[2]*program.Host)(pair), Tally: &s.tally, Skipped: s.skip}
	switch s.o.sabotage {
	case loseCompletion:
		r.Lose = func(wc iwarp.WC) bool {
			return wc.Op == iwarp.OpSend && wc.Status == iwarp.StatusSuccess && s.sabotaged.CompareAndSwap(false, true)
		}
	case skipOctet:
		r.Blind = func(b []byte) []byte {
			if len(b) > 0 && s.sabotaged.CompareAndSwap(false, true) {
				return b[:len(b)-1]
			}
			return b
		}
	}
	if f := r.Run(j.program, j.program.Configs); f != nil {
		s.findings.add(fmt.Sprintf("program %d: %v\n\nIts text, for go run ./internal/metamorphic -replay FILE:\n\n%v\n%s",
			j.seed, f, j.program, program.Draw(j.program.Conns, f.Trace)))
	}
}

// has reports whether the machine has a network, as far as is known.
func (s *soak) has(network string) bool {
	_, skipped := s.skipped.Load(network)
	return !skipped
}

// skip records that the machine does not have a network.
func (s *soak) skip(c program.Config, why error) {
	if _, known := s.skipped.LoadOrStore(c.Network, true); !known {
		fmt.Fprintf(s.w, "left out: %v\n", why)
		if !slices.ContainsFunc(s.networks, s.has) {
			s.findings.add("no program can run: the machine has none of the networks")
		}
	}
}

// afterRound measures what is in use when nothing runs.
func (s *soak) afterRound(number int) {
	if number == 0 {
		s.first = steady()
		s.last = s.first
	} else {
		bound := s.first
		bound.goroutines += between
		bound.descriptors += between
		var err error
		if s.last, err = settle(bound); err != nil {
			s.findings.add(fmt.Sprintf("after round %d: %v", number+1, err))
		}
	}
	if s.o.verbose {
		fmt.Fprintf(s.w, "after round %d: %d programs, %v\n", number+1, s.jobs, s.last)
	}
}

// sabotageSTag takes an STag that nothing else frees, if the options say so. The returned function frees it.
func (s *soak) sabotageSTag() func() {
	if s.o.sabotage != leakSTag {
		return func() {}
	}
	pd, err := s.pairs[0][0].RNIC.AllocPD()
	mw, err2 := pd.AllocMW()
	if err := errors.Join(err, err2); err != nil {
		panic(err) // the RNIC is new
	}
	return func() { _, _ = mw.Close(), pd.Close() }
}

// finish closes everything, and looks for leaked resources.
func (s *soak) finish() {
	for i, pair := range s.pairs {
		for _, h := range pair {
			if s.well() || s.o.sabotage != "" { // a failed program leaves its resources open
				if err := left(h.RNIC); err != nil {
					s.findings.add(fmt.Sprintf("at the end: %v", err))
				}
			}
			if err := h.Close(); err != nil {
				s.findings.add(fmt.Sprintf("at the end: %v", err))
			}
		}
		s.pairs[i] = nil // for the garbage collector
	}
	var err error
	if s.end, err = settle(s.start); err != nil {
		s.findings.add(fmt.Sprintf("at the end: %v", err))
	}
}
