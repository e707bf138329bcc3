package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/metamorphic/program"
	"github.com/goiwarp/iwarp/stag"
)

const (
	sharedQPs    = 4 // of the two connections
	sharedLen    = 200_000
	confirmEvery = 4 // writes
	closeWait    = time.Minute
)

// sharedCounts are the numbers of the shared region.
type sharedCounts struct {
	writes, reads, mirrored, octets int
}

// A sharedRegion is a region that one peer of its owner writes while the other one reads it. Every octet of the
// writer's write number n is n modulo 256.
type sharedRegion struct {
	owner  [2]*iwarp.QP // to the writer, and to the reader
	writer *iwarp.QP
	reader *iwarp.QP

	region, mirror iwarp.RemoteBuffer
	here           *iwarp.MR // the region, for its owner
	out, in, word  *iwarp.MR // of the writer, and of the reader
	outMem, inMem  []byte

	posted atomic.Uint64 // writes
	oldest atomic.Uint64 // the oldest write whose octets may still be there
	counts sharedCounts
}

// shareRegion runs a sharedRegion until the context ends, over a network that the number of the round chooses.
func (s *soak) shareRegion(ctx context.Context, number int) {
	for i := range s.networks {
		network := s.networks[(number+i)%len(s.networks)]
		counts, err := runShared(ctx, s.pairs[0], network)
		if errors.Is(err, program.ErrNotHere) {
			continue
		}
		if err != nil {
			s.findings.add(fmt.Sprintf("shared region over %s: %v", network, err))
		}
		s.shared.writes += counts.writes
		s.shared.reads += counts.reads
		s.shared.mirrored += counts.mirrored
		s.shared.octets += counts.octets
		return
	}
}

// runShared runs a sharedRegion over a network.
func runShared(ctx context.Context, hosts *hostPair, network string) (counts sharedCounts, err error) {
	var pds [2]*iwarp.PD
	for i, h := range hosts {
		pd, err := h.RNIC.AllocPD()
		if err != nil {
			return counts, err
		}
		defer func() { err = errors.Join(err, pd.Close()) }()
		pds[i] = pd
	}
	return sharedBetween(ctx, hosts, pds, network)
}

// sharedBetween runs a sharedRegion with its PDs.
func sharedBetween(ctx context.Context, hosts *hostPair, pds [2]*iwarp.PD, network string) (counts sharedCounts, err error) {
	setUp, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	var h sharedRegion
	for i, at := range []**iwarp.QP{&h.writer, &h.reader} {
		qps, err := program.Connect(setUp, network, hosts.rnics(), [2]*iwarp.QPConfig{{PD: pds[0]}, {PD: pds[1]}})
		if err != nil {
			return counts, err
		}
		*at, h.owner[i] = qps[0], qps[1]
		defer func() { err = errors.Join(err, closeBoth(hosts, qps)) }()
	}
	closeMRs, err := h.register(pds)
	defer func() { err = errors.Join(err, closeMRs()) }()
	if err != nil {
		return counts, err
	}
	err = h.run(ctx)
	return h.counts, err
}

// register registers all memory. The returned function closes the regions.
func (h *sharedRegion) register(pds [2]*iwarp.PD) (func() error, error) {
	h.outMem, h.inMem = make([]byte, sharedLen), make([]byte, sharedLen)
	mirror := new(*iwarp.MR)
	var all []*iwarp.MR
	closeAll := func() (err error) {
		for _, mr := range all {
			err = errors.Join(err, mr.Close())
		}
		return err
	}
	for _, r := range []struct {
		at     **iwarp.MR
		pd     *iwarp.PD
		mem    []byte
		access stag.Access
	}{
		{&h.here, pds[1], make([]byte, sharedLen), stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead},
		{mirror, pds[0], make([]byte, sharedLen), stag.LocalWrite | stag.RemoteWrite},
		{&h.out, pds[0], h.outMem, 0},
		{&h.in, pds[0], h.inMem, stag.LocalWrite},
		{&h.word, pds[0], make([]byte, 8), stag.LocalWrite},
	} {
		mr, err := r.pd.RegisterMR(r.mem, r.access, nil)
		if err != nil {
			return closeAll, err
		}
		*r.at = mr
		all = append(all, mr)
	}
	h.region, h.mirror = h.here.Advertise(0, sharedLen), (*mirror).Advertise(0, sharedLen)
	return closeAll, nil
}

// run runs all three until the context ends, or one of them fails.
func (h *sharedRegion) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [3]error
	var all sync.WaitGroup
	for i, work := range []func() error{h.write, h.read, h.send} {
		all.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				errs[i] = work()
			}
			cancel()
		})
	}
	all.Wait()
	for _, qp := range []*iwarp.QP{h.writer, h.reader, h.owner[0], h.owner[1]} {
		if qp.State() != iwarp.StateRTS {
			return errors.Join(append(errs[:], fmt.Errorf("a queue pair is in state %v: %w", qp.State(), qp.Err()))...)
		}
	}
	return errors.Join(errs[:]...)
}

// write writes the region once, and confirms sometimes what was written: a Read is answered after earlier writes. Those of them
// that were not confirmed before may have been placed in any order (RFC 5040 section 5.5), and over SCTP they are.
func (h *sharedRegion) write() error {
	ctx := context.Background()
	n := h.posted.Load() + 1
	for i := range h.outMem {
		h.outMem[i] = byte(n)
	}
	h.posted.Store(n)
	h.counts.writes++
	if err := h.writer.RDMAWrite(ctx, h.region, h.out.Slice(0, sharedLen)); err != nil || n%confirmEvery != 0 {
		return err
	}
	err := h.writer.RDMARead(ctx, h.word.Slice(0, 8), h.region.Slice(0, 8))
	if err == nil {
		h.oldest.Store(n - confirmEvery + 1)
	}
	return err
}

// read reads the region once, and checks how old its octets are.
func (h *sharedRegion) read() error {
	oldest := h.oldest.Load()
	if err := h.reader.RDMARead(context.Background(), h.in.Slice(0, sharedLen), h.region); err != nil {
		return err
	}
	newest := h.posted.Load()
	h.counts.reads++
	n, err := checkAge(h.inMem, oldest, newest)
	h.counts.octets += n
	return err
}

// send lets the owner send the region while it changes.
func (h *sharedRegion) send() error {
	h.counts.mirrored++
	return h.owner[1].RDMAWrite(context.Background(), h.mirror, h.here.Slice(0, sharedLen))
}

// checkAge checks that each octet is from one of the writes from the oldest to the newest one, and returns how many it has checked. If
// there were too many writes, it cannot check any.
func checkAge(octets []byte, oldest, newest uint64) (int, error) {
	if newest-oldest > 255 {
		return 0, nil
	}
	for i, b := range octets {
		if b-byte(oldest) > byte(newest-oldest) {
			return i, fmt.Errorf("octet %d is %#02x, but the writes were from %#02x to %#02x", i, b, byte(oldest), byte(newest))
		}
	}
	return len(octets), nil
}

// closeBoth closes both ends of a connection.
func closeBoth(hosts *hostPair, qps [2]*iwarp.QP) error {
	var errs [3]error
	var all sync.WaitGroup
	all.Go(func() { errs[0] = qps[0].Close() })
	errs[1] = qps[1].Close()
	all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	for i, qp := range qps {
		_, err := hosts[i].Take(ctx, qp)
		errs[2] = errors.Join(errs[2], err)
	}
	return errors.Join(errs[:]...)
}
