package nvmehost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/stag"
)

// statuses tries the commands that move no data, and those that the target must refuse.
func statuses(ctx context.Context, j *Job) error {
	c, n, err := j.open(ctx, 1)
	if err != nil {
		return err
	}
	err = zeros(ctx, n)
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	r, err := newRaw(j)
	if err != nil {
		return err
	}
	defer r.close()
	io, err := r.ready(ctx)
	if err != nil {
		return err
	}
	return refusals(ctx, io)
}

// zeros writes durably, and then trims the octets or makes them zeros.
func zeros(ctx context.Context, n *host.Namespace) error {
	const size = 64 << 10
	ones := bytes.Repeat([]byte{0xff}, size)
	read := func(what string, want byte, off, size int64) error {
		got := make([]byte, size)
		if _, err := n.ReadAtContext(ctx, got, off); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if got[0] != want || got[size-1] != want {
			return fmt.Errorf("%s: octets %#x and %#x, and not %#x", what, got[0], got[size-1], want)
		}
		return nil
	}
	if _, err := n.WriteFUA(ctx, ones, 0); err != nil {
		return fmt.Errorf("write with FUA: %w", err)
	}
	if err := n.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if err := n.WriteZeroes(ctx, 0, 8<<10, false); err != nil {
		return fmt.Errorf("write zeroes: %w", err)
	}
	if err := errors.Join(read("zeros", 0, 0, 8<<10), read("behind the zeros", 0xff, 8<<10, 8<<10)); err != nil {
		return err
	}
	if err := n.Trim(ctx, host.Range{Off: 16 << 10, Size: 8 << 10}, host.Range{Off: 32 << 10, Size: 4 << 10}); err != nil {
		return fmt.Errorf("trim: %w", err)
	}
	if n.TrimmedReadsZero() {
		return errors.Join(read("trimmed", 0, 16<<10, 8<<10), read("behind what was trimmed", 0xff, 24<<10, 8<<10))
	}
	return nil
}

// refusals sends commands that the target must refuse: each with one of the statuses.
func refusals(ctx context.Context, q *queue) error {
	const nsid, beyond = 1, 1 << 50
	unknown := capsule.FlushSQE(0, nsid)
	unknown.Opcode = 0x7E
	block := make([]byte, 4096)
	var errs []error
	for _, c := range []struct {
		what string
		do   func() (answer, error)
		want []capsule.Status
	}{
		{"unknown opcode", func() (answer, error) { return q.do(ctx, unknown) }, []capsule.Status{capsule.StatusInvalidOpcode}},
		{"LBA out of range", func() (answer, error) {
			return q.withData(ctx, block, stag.LocalWrite|stag.RemoteWrite, func(s capsule.SGL) capsule.SQE {
				return capsule.RW{Opcode: capsule.OpRead, NSID: nsid, SLBA: beyond, NLB: 7}.SQE(0, s)
			})
		}, []capsule.Status{capsule.StatusLBAOutOfRange, capsule.StatusInternalError}},
		{"no such namespace", func() (answer, error) { return q.do(ctx, capsule.FlushSQE(0, 99)) }, []capsule.Status{capsule.StatusInvalidNamespace}},
	} {
		a, err := c.do()
		q.job.say("%s: %v", c.what, a.Status)
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		if !slices.ContainsFunc(c.want, a.Status.Is) {
			errs = append(errs, fmt.Errorf("%s: status %v", c.what, a.Status))
		}
	}
	return errors.Join(errs...)
}
