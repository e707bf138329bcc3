package host

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// An EventKind says what an Event reports.
type EventKind uint8

// The kinds of events.
const (
	// EventAsync: the target has reported something other than a change of namespaces; or, if Err
	// is a capsule.StatusError, it refuses to report anything.
	EventAsync EventKind = iota + 1
	// EventNamespaces: namespaces were added, removed or changed. Controller.Namespaces returns
	// the current ones; Namespaces that the program already has are up to date.
	EventNamespaces
	// EventDisconnected: the connections are lost. Commands wait, or fail.
	EventDisconnected
	// EventConnectFailed: an attempt to connect again has failed.
	EventConnectFailed
	// EventReconnected: the connections are established again.
	EventReconnected
	// EventGivenUp: there are no more attempts, and all commands fail.
	EventGivenUp
)

func (k EventKind) String() string {
	names := [...]string{"", "async", "namespaces", "disconnected", "connect failed", "reconnected", "given up"}
	if int(k) < len(names) {
		return names[k]
	}
	return ""
}

// An Event reports something that happens to a controller independently of calls of the program.
type Event struct {
	Kind EventKind
	// Async is what the target has reported, for EventAsync and EventNamespaces.
	Async capsule.AsyncEvent
	// NSIDs are the namespaces that EventNamespaces concerns; nil: any.
	NSIDs []uint32
	// Err is the cause, or what went wrong while the event was handled.
	Err error
}

// maxEvents is how many events wait for the program. Further ones are dropped.
const maxEvents = 64

// enableEvents requests the events that the target can report and this host knows. A target that refuses this may support everything
// else: the program is told of the refusal, and the target reports only events that need not be enabled.
func (a *assoc) enableEvents(ctx context.Context) error {
	wanted := a.id.OAES & (capsule.NoticeNamespaces | capsule.NoticeDiscovery)
	if wanted == 0 {
		return nil
	}
	_, err := a.command(ctx, capsule.SetFeatures{FID: capsule.FeatureAsyncEvents, Value: wanted}.SQE(0, capsule.SGL{}), nil)
	if errors.As(err, new(capsule.StatusError)) {
		a.noEvents = err
		return nil
	}
	return err
}

// watch keeps an Asynchronous Event Request outstanding until the association has failed, and handles
// the events. It sends a new request before it handles an event: the target reports no further event of
// the same kind until the log page is read. The error is a status with which the target has refused
// such a request.
func (a *assoc) watch(ctx context.Context, handle func(context.Context, capsule.AsyncEvent)) error {
	q := a.admin
	c := &command{sqe: capsule.AsyncEventSQE(0)}
	err := q.start(q.event, c)
	for err == nil {
		var cqe capsule.CQE
		cqe, err = q.wait(ctx, q.event, c)
		switch {
		case err != nil:
			return nil // the association has failed, or is closed
		case !cqe.Status.OK():
			return cqe.Status.Err()
		}
		if err = q.start(q.event, c); err == nil {
			handle(ctx, capsule.ParseAsyncEvent(cqe.DW0))
		}
	}
	return nil
}

// readLog reads a log page, so that the target reports the next event.
func (a *assoc) readLog(ctx context.Context, lid uint8, n int) ([]byte, error) {
	log := make([]byte, n)
	_, err := a.command(ctx, capsule.NewGetLogPage(lid, 0, uint32(n), false).SQE(0, capsule.SGL{}), log)
	return log, err
}

var errPersistent = errors.New("nvme: the controller has reported a persistent internal error")

// handleEvent handles an event for the controller. After a persistent internal error the host connects again, to a new controller
// (Base 2.0, 5.2).
func (c *Controller) handleEvent(ctx context.Context, a *assoc, e capsule.AsyncEvent) {
	event := Event{Kind: EventAsync, Async: e}
	switch e.LID {
	case capsule.LogChangedNamespaces:
		event.Kind = EventNamespaces
		event.NSIDs, event.Err = c.changed(ctx, a)
	case capsule.LogError:
		_, event.Err = a.readLog(ctx, e.LID, capsule.ErrorEntrySize)
	case capsule.LogSMART:
		_, event.Err = a.readLog(ctx, e.LID, capsule.SMARTSize)
	case capsule.LogFirmware:
		_, event.Err = a.readLog(ctx, e.LID, capsule.FirmwareSize)
	}
	if a.cause() == nil {
		c.emit(event)
	}
	if e.Type == capsule.EventError && e.Info == capsule.EventPersistentError {
		a.fail(errPersistent)
	}
}

// changed reads which namespaces have changed, and describes again those that the program has.
func (c *Controller) changed(ctx context.Context, a *assoc) ([]uint32, error) {
	log, err := a.readLog(ctx, capsule.LogChangedNamespaces, capsule.ChangedNamespacesSize)
	if err != nil {
		return nil, err
	}
	ids, all, err := capsule.ParseChangedNamespaces(nil, log)
	if err != nil {
		a.fail(err)
		return nil, err
	}
	return ids, c.refresh(ctx, a, ids, all)
}

// emit reports an event, if the program has not left too many in the channel.
func (c *Controller) emit(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.eventsClosed {
		return
	}
	select {
	case c.events <- e:
	default:
	}
}
