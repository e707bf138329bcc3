package nvmecut

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// How the LBAs are divided among the writers.
const (
	Writers = 4
	blocks  = 64 // of a writer
	// Size is the required size of the namespace, in octets.
	Size = Writers * blocks * BlockSize
)

// The subsystem of the target, and the port that it listens at.
const (
	SubNQN = "nqn.2026-11.example.iwarp:power"
	Port   = "4420"
)

// A Host writes blocks to a target, and keeps the ledgers, over all lives of the target. Its methods must be called one after
// the other.
type Host struct {
	ledgers []*ledger
	lots    []*rand.Rand
	c       *host.Controller
	n       *host.Namespace
}

// NewHost makes a host that has written nothing yet.
func NewHost(seed uint64) *Host {
	h := &Host{}
	for i := range uint64(Writers) {
		h.ledgers = append(h.ledgers, newLedger(int64(i)*blocks, blocks))
		h.lots = append(h.lots, rand.New(rand.NewPCG(seed, i)))
	}
	return h
}

// Meet connects to the target at addr, which may not have started yet, and checks the contents of the namespace.
func (h *Host) Meet(ctx context.Context, addr string) error {
	var last error
	for {
		if last = h.connect(ctx, addr); last == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nvmecut: no target: %w", last)
		case <-time.After(100 * time.Millisecond):
		}
	}
	area := make([]byte, Size)
	if _, err := h.n.ReadAtContext(ctx, area, 0); err != nil {
		return err
	}
	for i, l := range h.ledgers {
		l.check(area[i*blocks*BlockSize:][:blocks*BlockSize])
	}
	return nil
}

// connect makes one attempt. The host does not reconnect by itself: a new life of the target requires another Meet.
func (h *Host) connect(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c, err := host.Connect(ctx, addr, SubNQN, &host.Options{
		HostNQN: "nqn.2026-11.example.iwarp:writer", HostID: [16]byte{1}, Queues: 2, QueueSize: 32, KATO: -1, CtrlLoss: -1, Retries: -1,
	})
	if err != nil {
		return err
	}
	list, err := c.Namespaces(ctx)
	if err == nil && (len(list) != 1 || list[0].BlockSize() != BlockSize || list[0].Size() < Size) {
		err = errors.New("nvmecut: the target has another namespace than wanted")
	}
	if err != nil {
		_ = c.Close() // the first error is the one that counts
		return err
	}
	h.c, h.n = c, list[0]
	return nil
}

// Run writes until the connections are lost, which is not an error. A Write or a Flush that fails is one.
func (h *Host) Run(ctx context.Context) error {
	ended := make(chan error, Writers)
	for i := range Writers {
		go func() { ended <- h.write(ctx, h.ledgers[i], h.lots[i]) }()
	}
	var errs []error
	for range Writers {
		if err := <-ended; !errors.Is(err, host.ErrLost) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// write writes blocks until that fails: some with FUA, some followed by a Flush.
func (h *Host) write(ctx context.Context, l *ledger, lot *rand.Rand) error {
	b := make([]byte, BlockSize)
	for {
		if lot.IntN(2) == 0 {
			block := lot.IntN(blocks)
			v := l.begin(block)
			l.put(b, block, v)
			if _, err := h.n.WriteFUA(ctx, b, l.offset(block)); err != nil {
				return err
			}
			l.acknowledge(block, v)
			continue
		}
		if err := h.writeAndFlush(ctx, l, lot); err != nil {
			return err
		}
	}
}

func (h *Host) writeAndFlush(ctx context.Context, l *ledger, lot *rand.Rand) error {
	b := make([]byte, BlockSize)
	written := make(map[int]uint64)
	for range 1 + lot.IntN(4) {
		block := lot.IntN(blocks)
		v := l.begin(block)
		l.put(b, block, v)
		if _, err := h.n.WriteAtContext(ctx, b, l.offset(block)); err != nil {
			return err
		}
		written[block] = v
	}
	if err := h.n.Flush(ctx); err != nil {
		return err
	}
	for block, v := range written {
		l.acknowledge(block, v)
	}
	return nil
}

func (l *ledger) offset(block int) int64 { return (l.base + int64(block)) * BlockSize }

// Part closes the remaining connections to the target.
func (h *Host) Part() {
	if h.c != nil {
		_ = h.c.Close() // the target is gone
		h.c, h.n = nil, nil
	}
}

// Records returns how many versions were acknowledged, and how many LBAs had lost their required contents.
func (h *Host) Records() (acknowledged, lost int) {
	for _, l := range h.ledgers {
		acknowledged += l.acknowledged
		lost += l.lost
	}
	return acknowledged, lost
}

// News describes the losses that were found since its last call.
func (h *Host) News() (news []string) {
	for _, l := range h.ledgers {
		news = append(news, l.news...)
		l.news = nil
	}
	return news
}

// Forget counts everything as lost: the target can no longer open its file.
func (h *Host) Forget() {
	for _, l := range h.ledgers {
		for i, v := range l.durable {
			if v != 0 {
				l.lost++
			}
			l.durable[i], l.sent[i] = 0, nil
		}
	}
}
