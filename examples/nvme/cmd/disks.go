package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/target"
)

// disks is a target with one subsystem, and the back ends of its namespaces.
type disks struct {
	nqn       string
	target    *target.Target
	resizable bool // with -control
	solicitor *iwarp.Solicitor

	mu     sync.Mutex // held while namespaces change
	ended  bool
	last   uint32 // NSID
	spaces map[uint32]*medium
}

// newDisks opens all back ends, or fails.
func newDisks(cfg *target.Config, f *serving) (*disks, error) {
	t, err := target.New(cfg)
	if err != nil {
		return nil, err
	}
	d := &disks{nqn: f.nqn, target: t, resizable: f.control, solicitor: cfg.Solicitor, spaces: make(map[uint32]*medium)}
	if err := t.AddSubsystem(target.Subsystem{NQN: f.nqn, Hosts: f.allow}); err != nil {
		return nil, errors.Join(err, d.end())
	}
	for _, spec := range f.backings {
		if _, err := d.add(spec); err != nil {
			return nil, errors.Join(err, d.end())
		}
	}
	return d, nil
}

var errEnded = errors.New("the target has ended")

// add opens a back end, and adds it as a namespace.
func (d *disks) add(spec string) (uint32, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return 0, errEnded
	}
	m, err := openMedium(spec, d.resizable)
	if err != nil {
		return 0, err
	}
	// An NSID is not reused: hosts would take the namespace for the one that was removed, since the UUID
	// is derived from it.
	nsid := d.last + 1
	if err := d.target.AddNamespace(d.nqn, target.Namespace{NSID: nsid, Backend: m.view()}); err != nil {
		return 0, errors.Join(err, m.close())
	}
	d.last = nsid
	d.spaces[nsid] = m
	return nsid, nil
}

// space returns the medium of a namespace. mu must be held.
func (d *disks) space(nsid uint32) (*medium, error) {
	if d.ended {
		return nil, errEnded
	}
	m := d.spaces[nsid]
	if m == nil {
		return nil, fmt.Errorf("there is no namespace %d", nsid)
	}
	return m, nil
}

// remove removes a namespace. All data that hosts were told are written are in its medium, and durable.
func (d *disks) remove(nsid uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.space(nsid)
	if err != nil {
		return err
	}
	if err := d.target.RemoveNamespace(d.nqn, nsid); err != nil {
		return err
	}
	delete(d.spaces, nsid)
	return m.end()
}

// resize changes the size of a namespace.
func (d *disks) resize(nsid uint32, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.space(nsid)
	if err != nil {
		return err
	}
	if err := m.resize(size); err != nil {
		return err
	}
	return d.target.Resize(d.nqn, nsid, m.view())
}

// end ends the target gracefully, and then closes the back ends.
func (d *disks) end() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	errs := []error{d.target.Shutdown(context.Background())}
	for _, nsid := range slices.Sorted(maps.Keys(d.spaces)) {
		errs = append(errs, d.spaces[nsid].close())
	}
	return errors.Join(errs...)
}

// counters returns a line of JSON with the counters of the target and, with -solicit, the maximum number of octets that were outstanding.
func (d *disks) counters() string {
	c := struct {
		target.Stats
		MostSolicited int64 `json:",omitempty"`
	}{Stats: d.target.Stats()}
	if d.solicitor != nil {
		c.MostSolicited = d.solicitor.Stats().MaxGranted
	}
	line, _ := json.Marshal(c) // numbers can always be encoded
	return string(line)
}

// report writes the counters periodically, until stop is called.
func (d *disks) report(w io.Writer, every time.Duration) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintln(w, d.counters())
			case <-over:
				fmt.Fprintln(w, d.counters())
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}
