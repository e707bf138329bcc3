package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// adminTransfer is the maximum number of octets that an admin command moves.
const adminTransfer = 64 << 10

const (
	pollInterval    = 100 * time.Millisecond
	readyUnit       = 500 * time.Millisecond // of CAP.TO
	shutdownTimeout = 5 * time.Second
)

var errFailed = errors.New("nvme: the controller has failed (CSTS.CFS)")

// property reads a property.
func (a *assoc) property(ctx context.Context, off uint32) (uint64, error) {
	cqe, err := a.command(ctx, capsule.GetProperty(off).SQE(0), nil)
	return cqe.Value(), err
}

// setCC writes the configuration of the controller.
func (a *assoc) setCC(ctx context.Context, cc capsule.CC) error {
	_, err := a.command(ctx, capsule.SetProperty(capsule.PropCC, uint64(cc.Value())).SQE(0), nil)
	return err
}

// config returns what this host writes to CC: the NVM command set, 4 KiB pages, the usual entry sizes.
func (a *assoc) config() capsule.CC {
	cc := capsule.CC{IOSQES: 6, IOCQES: 4}
	if a.cap.CSS&capsule.CSSCSI != 0 {
		cc.CSS = 6
	}
	return cc
}

// enable sets CC.EN, and waits until the controller is ready (Base 2.0, 3.5.1).
func (a *assoc) enable(ctx context.Context) error {
	v, err := a.property(ctx, capsule.PropCAP)
	if err != nil {
		return err
	}
	if a.cap = capsule.ParseCAP(v); a.cap.MPSMIN > 0 {
		return malformed("the controller has memory pages of at least %d KiB", 4<<a.cap.MPSMIN)
	}
	cc := a.config()
	if err := a.setCC(ctx, cc); err != nil {
		return err
	}
	cc.EN = true
	if err := a.setCC(ctx, cc); err != nil {
		return err
	}
	if err := a.await(ctx, a.readyTime(), func(s capsule.CSTS) bool { return s.RDY }); err != nil {
		return fmt.Errorf("nvme: the controller does not become ready: %w", err)
	}
	v, err = a.property(ctx, capsule.PropVS)
	a.version = capsule.Version(v)
	return err
}

// readyTime returns how long CSTS.RDY may take to follow CC.EN.
func (a *assoc) readyTime() time.Duration { return time.Duration(max(a.cap.TO, 1)) * readyUnit }

// await polls CSTS until wanted reports true.
func (a *assoc) await(ctx context.Context, limit time.Duration, wanted func(capsule.CSTS) bool) error {
	for deadline := time.Now().Add(limit); ; {
		v, err := a.property(ctx, capsule.PropCSTS)
		if err != nil {
			return err
		}
		switch s := capsule.ParseCSTS(uint32(v)); {
		case s.CFS:
			return errFailed
		case wanted(s):
			return nil
		case !time.Now().Before(deadline):
			return fmt.Errorf("%w: CSTS is still %#x after %v", ErrTimeout, v, limit)
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// disable clears CC.EN, and waits until the controller is no longer ready.
func (a *assoc) disable(ctx context.Context) error {
	if err := a.setCC(ctx, a.config()); err != nil {
		return err
	}
	return a.await(ctx, a.readyTime(), func(s capsule.CSTS) bool { return !s.RDY })
}

// shutdown tells the controller that the host disconnects, and waits until it has made everything durable.
func (a *assoc) shutdown(ctx context.Context) error {
	cc := a.config()
	cc.EN, cc.SHN = true, capsule.SHNNormal
	if err := a.setCC(ctx, cc); err != nil {
		return err
	}
	err := a.await(ctx, shutdownTimeout, func(s capsule.CSTS) bool { return s.SHST == capsule.SHSTComplete })
	if err != nil {
		return fmt.Errorf("nvme: the controller does not shut down: %w", err)
	}
	return nil
}

// sleep returns after d, or with the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
