package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/interop/nbd"
	"github.com/goiwarp/iwarp/interop/powercut"
)

// A machine is a target with its own disk, which persists across its boots.
type machine struct {
	*power
	number    int
	lot       *rand.Rand
	disk      *nbd.Disk
	requester *powercut.Requester
	boots     int
}

// lotOf returns the source of a run's random choices.
func lotOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func newMachine(p *power, number int) (*machine, error) {
	m := &machine{power: p, number: number, lot: lotOf(p.seed + uint64(number)<<32)}
	m.newDisk()
	var err error
	m.requester, err = powercut.NewRequester()
	return m, err
}

func (m *machine) newDisk() {
	m.disk = nbd.NewDisk(bytes.Clone(m.empty), m.lot.Uint64())
	if m.sabotage == powercut.LyingDisk {
		m.disk.Lie()
	}
}

// The time between the first record of a boot and the cut is random.
const (
	leastTraffic = 50 * time.Millisecond
	mostTraffic  = 1200 * time.Millisecond
)

// cut boots the machine, checks its records, writes further ones, and cuts the power.
func (m *machine) cut(ctx context.Context) error {
	after := leastTraffic + time.Duration(m.lot.Int64N(int64(mostTraffic-leastTraffic)))
	backing := powercut.BackingOf(m.boots)
	acked, lost := m.requester.Records()
	if err := m.live(ctx, after); err != nil {
		return err
	}
	m.tell()
	nowAcked, nowLost := m.requester.Records()
	m.say("machine %d, %-6s: %4d lost before, %4d acknowledged, cut after %4d ms", m.number, backing, nowLost-lost, nowAcked-acked, after.Milliseconds())
	return nil
}

// tell prints what was lost, or the beginning of it.
func (m *machine) tell() {
	const most = 3
	news := m.requester.News()
	for _, n := range news[:min(most, len(news))] {
		m.say("machine %d: lost: %s", m.number, n)
	}
	if len(news) > most {
		m.say("machine %d: and %d more", m.number, len(news)-most)
	}
}

// live runs one boot, with traffic for a time and then a cut. A machine that does not start
// is booted again, like the guests of the lab. If its program starts, but cannot open its
// file, everything is lost.
func (m *machine) live(ctx context.Context, traffic time.Duration) error {
	for try := 1; ; try++ {
		said, err := m.boot(ctx, traffic)
		if !errors.Is(err, errNotUp) || try == boots || ctx.Err() != nil {
			return err
		}
		m.say("machine %d: %v (see console-%[1]d-%03[3]d)", m.number, err, m.boots-1)
		if said != "" {
			m.requester.Forget()
			m.newDisk()
		}
	}
}

// errNotUp: the machine did not start, so that no connection was possible.
var errNotUp = errors.New("the machine did not come up")

// boot is one attempt of live. said is why the target's program ended, if it did.
func (m *machine) boot(ctx context.Context, traffic time.Duration) (said string, err error) {
	port, err := m.requester.Listen(ctx)
	if err != nil {
		return "", err
	}
	defer m.requester.Part()
	q := &slimVM{
		image: m.image, initramfs: m.initramfs, accel: m.accel, network: true, disks: []nbd.Medium{m.disk},
		console: filepath.Join(m.out, fmt.Sprintf("console-%d-%03d", m.number, m.boots)),
		args:    fmt.Sprintf("-requester 10.0.2.2:%d -backing %s -sabotage %s", port, powercut.BackingOf(m.boots), m.sabotage),
	}
	m.boots++
	up, err := q.start(ctx)
	if err != nil {
		return "", err
	}
	defer m.disk.Cut() // when it is not in use any more
	defer q.kill()
	meet, cancel := m.pace.Context(up, bootTime, nil)
	defer cancel()
	if err := m.requester.Meet(meet); err != nil {
		q.kill()
		said := lastWord(q.console)
		if said != "" {
			err = errors.New(said)
		}
		return said, fmt.Errorf("%w: %w", errNotUp, err)
	}
	if traffic == 0 {
		return "", nil
	}
	written := make(chan error, 1)
	go func() { written <- m.requester.Run(ctx) }()
	select {
	case err := <-written:
		return "", endedEarly(up, err, q.console)
	case <-time.After(traffic):
	}
	q.kill()
	return "", <-written
}

// endedEarly returns the error of traffic that ended before the power was cut.
func endedEarly(up context.Context, err error, console string) error {
	said := errors.New("the target has ended, or the traffic: " + cmp.Or(lastWord(console), "nothing was said"))
	return fmt.Errorf("before the power was cut: %w", errors.Join(err, context.Cause(up), said))
}

// lastWord finds in the output of a console what the target's program printed when it ended.
func lastWord(console string) string {
	b, err := os.ReadFile(console)
	if err != nil {
		return ""
	}
	_, word, _ := strings.Cut(string(b), powercut.Sign+" the end: ")
	line, _, _ := strings.Cut(word, "\n")
	return strings.TrimSpace(line)
}
