package nvmehost

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// wrongKey makes the target read with a key that does not exist, and from an offset outside an existing region. Each ends the
// connection of that queue with our Terminate. Another host's controller continues.
func wrongKey(ctx context.Context, j *Job) error {
	other := *j
	other.HostNQN = ""
	c, n, err := other.open(ctx, 1)
	if err != nil {
		return err
	}
	for _, wrong := range []struct {
		what string
		key  uint32 // by which it is changed
		off  uint64
	}{
		{"key", 0x5a5a00, 0},
		{"offset", 0, 1 << 20},
	} {
		if err = j.wrong(ctx, wrong.what, wrong.key, wrong.off); err != nil {
			err = fmt.Errorf("wrong %s: %w", wrong.what, err)
			break
		}
		if err = zeros(ctx, n); err != nil {
			err = fmt.Errorf("the other controller: %w", err)
			break
		}
	}
	return errors.Join(err, c.Close())
}

// wrong sends a Write whose data are not where it says.
func (j *Job) wrong(ctx context.Context, what string, key uint32, off uint64) error {
	r, err := newRaw(j)
	if err != nil {
		return err
	}
	defer r.close()
	io, err := r.ready(ctx)
	if err != nil {
		return err
	}
	const size = 8192
	mr, err := r.pd.RegisterMR(make([]byte, size), stag.RemoteRead, &iwarp.MROptions{QP: io.qp})
	if err != nil {
		return err
	}
	rb := mr.Advertise(0, size)
	a, err := io.do(ctx, capsule.RW{Opcode: capsule.OpWrite, NSID: 1, NLB: size/512 - 1}.SQE(0, capsule.KeyedSGL(uint32(rb.STag)^key, rb.TO+off, size, true)))
	if err == nil {
		return fmt.Errorf("a response: %v", a.Status)
	}
	j.say("wrong %s: %v", what, err)
	select {
	case <-io.qp.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	var terminated *iwarp.TerminateError
	if err := io.qp.Err(); !errors.As(err, &terminated) || terminated.Remote {
		return fmt.Errorf("the queue has ended without a Terminate of ours: %w", err)
	}
	j.say("wrong %s: the queue has ended: %v", what, terminated)
	// The admin queue of the same controller may continue or end: that is the target's choice.
	return nil
}
