package host

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// keepAliveInterval returns how often Keep Alive is sent. If each command counts, a controller checks
// once every KATO whether there were any, and so may notice a command that arrived just after a check
// two periods later: half of the usual interval avoids that (Base 2.0, 3.9).
func (a *assoc) keepAliveInterval() time.Duration {
	if a.id.CTRATT&capsule.CTRATTTrafficBased != 0 {
		return a.o.KATO / 4
	}
	return a.o.KATO / 2
}

// keepAlive sends Keep Alive until the association has failed. It has its own slot, so that it does
// not wait for other commands.
func (a *assoc) keepAlive() {
	t := time.NewTicker(a.keepAliveInterval())
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-a.down:
			return
		}
		q := a.admin
		cqe, err := q.doIn(context.Background(), q.kept, &command{sqe: capsule.KeepAliveSQE(0), timeout: a.o.KATO})
		if err == nil && !cqe.Status.OK() {
			a.fail(fmt.Errorf("nvme: the target refuses Keep Alive: %w", cqe.Status.Err()))
		}
	}
}
