package rmaperf

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

const (
	// holeReads is how many reads of 4 KiB a peer does not answer. They occupy the whole window.
	holeReads = 8
	// lingers is ServerConfig.Linger, the default.
	lingers = 250 * time.Millisecond
)

// A hole is two clients that share a window, each with a link of its own. One of the links carries nothing.
type hole struct {
	b        *bench
	scene    *scene
	window   *rma.Solicitor
	dark     *end
	darkRead *rma.Handle
	fine     *end
	fineRead *rma.Handle
	sinks    [holeReads][]byte
}

// blackhole measures the cost of a peer whose answers are lost: how long reads take to fail, and how long the window is
// not whole; and that reads of another peer go on when the window is whole.
func (b *bench) blackhole() error {
	var worst, whole float64
	for range max(b.opts.Pairs/3, 1) {
		failed, returned, err := b.oneHole()
		if err != nil {
			return err
		}
		worst, whole = max(worst, failed), max(whole, returned)
	}
	b.Marks.Most("blackholed peer: TIMEOUT, the longest against its timer of 50 ms", worst, timerSlack, "")
	b.Marks.Most("blackholed peer: until the window is whole, against OpTimeout + Linger", whole, timerSlack, "")
	return nil
}

// oneHole returns the longest time until a failure, and the time until the window was whole, each relative to what it should
// be.
func (b *bench) oneHole() (failed, whole float64, err error) {
	what := &service{Kind: kindRMA, CRC: b.opts.CRC, Sealed: true, MaxOp: holeReads * 4 * kib, Regions: 2, Size: holeReads * 4 * kib}
	s, err := newScene(b.ctx, what)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	h := &hole{b: b, scene: s}
	cfg, err := clientConfig(true, what.MaxOp)
	if err != nil {
		return 0, 0, err
	}
	if h.window, err = rma.NewSolicitor(solicit.Config{Fixed: holeReads * (4*kib + tag)}); err != nil {
		return 0, 0, err
	}
	cfg.OpTimeout, cfg.Solicitor = peer.Timeout, h.window
	if h.dark, h.darkRead, err = h.client(cfg); err != nil {
		return 0, 0, err
	}
	if h.fine, h.fineRead, err = h.client(cfg); err != nil {
		return 0, 0, err
	}
	return h.measure()
}

// client connects a client over a link of its own, and opens a region.
func (h *hole) client(cfg rma.ClientConfig) (*end, *rma.Handle, error) {
	e, err := h.scene.client(h.scene.link(fast, 0), cfg, holeReads)
	if err != nil {
		return nil, nil, err
	}
	r, err := e.open(1)
	return e, r, err
}

func (h *hole) measure() (failed, whole float64, err error) {
	link := h.scene.links[0]
	link.SetRate(0)
	began := time.Now()
	for i := range h.sinks {
		h.sinks[i] = bytes.Repeat([]byte{0xa5}, 4*kib)
		if _, err := h.dark.portal.Post(rma.Command{Op: rma.Read, Handle: h.darkRead, Buf: h.sinks[i], Timeout: timer}); err != nil {
			return 0, 0, err
		}
	}
	longest, err := h.timedOut()
	if err != nil {
		return 0, 0, err
	}
	if g := h.window.Stats().Granted; g != holeReads*(4*kib+tag) && time.Since(began) < timer+lingers {
		return 0, 0, fmt.Errorf("the window has %d octets of operations that may still be answered", g)
	}
	// This read needs the whole window, so it waits until the window is whole.
	if _, failed, err := h.fine.does(rma.Command{Op: rma.Read, Handle: h.fineRead, Buf: make([]byte, holeReads*4*kib)}); err != nil || failed != nil {
		return 0, 0, fmt.Errorf("a read of another peer: %w", errors.Join(err, failed))
	}
	took := time.Since(began)
	if g := h.window.Stats().Granted; g != 0 {
		return 0, 0, fmt.Errorf("the window has %d octets after that", g)
	}
	link.SetRate(fast) // answers that come from now on are too late
	select {
	case <-h.dark.client.Done():
	case <-time.After(peer.Timeout):
		return 0, 0, errors.New("a write to a dead STag has not ended the connection")
	}
	for _, sink := range h.sinks {
		if !bytes.Equal(sink, bytes.Repeat([]byte{0xa5}, 4*kib)) {
			return 0, 0, errors.New("octets were placed after the TIMEOUT")
		}
	}
	h.b.Note("blackholed peer: TIMEOUT after %v at most, the window whole after %v", longest, took)
	return float64(longest) / float64(timer), float64(took) / float64(timer+lingers), nil
}

// timedOut takes the failures of the reads without an answer, and returns the longest time.
func (h *hole) timedOut() (longest time.Duration, err error) {
	for range holeReads {
		if _, err := h.dark.portal.Wait(h.b.ctx, h.dark.one[:]); err != nil {
			return 0, err
		}
		one := &h.dark.one[0]
		if err := expect(one.Err, rma.Timeout, 0); err != nil {
			return 0, err
		}
		longest = max(longest, one.Total)
	}
	return longest, nil
}
