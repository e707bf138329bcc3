package perf

import (
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rpc"
	"github.com/goiwarp/iwarp/solicit"
)

// An rdmaDriver is the client of the library under test.
type rdmaDriver struct {
	w     workload
	rnic  *iwarp.RNIC
	pd    *iwarp.PD
	ends  []*rdmaEnd
	calls []*rpc.Client // instead, if the operations are requests

	pacer     *pacer           // of the slow connections, nil if there are none
	solicitor *iwarp.Solicitor // of the QPs that are measured; nil: their Reads do not wait
}

func dialIWARP(addr string, w workload) (driver, error) {
	d := &rdmaDriver{w: w}
	var err error
	if d.rnic, d.pd, err = openRNIC(); err != nil {
		return nil, err
	}
	if w.Window > 0 {
		d.solicitor = iwarp.NewSolicitor(solicit.Config{Fixed: w.Window})
	}
	for range w.Conns {
		if err := d.dial(addr); err != nil {
			_ = exported.Close(d.rnic) // the first error counts
			return nil, err
		}
	}
	if err := d.dialExtra(addr); err != nil {
		_ = exported.Close(d.rnic) // the first error counts
		return nil, err
	}
	return d, nil
}

func (d *rdmaDriver) dial(addr string) error {
	if d.w.isCall() {
		return d.dialCall(addr)
	}
	e, err := newEnd(d.rnic, d.pd, &d.w)
	if err != nil {
		return err
	}
	cfg := e.config()
	cfg.Solicitor = d.solicitor
	qp, err := d.dialOne(addr, cfg)
	if err != nil {
		return err
	}
	var theirs windows
	if err := theirs.parse(qp.PrivateData()); err != nil {
		return err
	}
	d.ends = append(d.ends, e)
	return e.connected(theirs)
}

func (d *rdmaDriver) run(n int, times []int64) (taken []int64, err error) {
	if d.pacer == nil {
		return d.runAlone(n, times)
	}
	err = d.pacer.during(func() (err error) {
		taken, err = d.runAlone(n, times)
		return err
	})
	return taken, err
}

// runAlone is like run, without the slow connections.
func (d *rdmaDriver) runAlone(n int, times []int64) ([]int64, error) {
	if d.w.isCall() {
		return d.call(n, times)
	}
	if d.w.Latency {
		return d.ends[0].converse(n, times)
	}
	return times, streamAll(d.ends, n)
}

func (d *rdmaDriver) close() error {
	var err error
	if d.pacer != nil {
		err = d.pacer.close()
	}
	err = errors.Join(err, exported.Close(d.rnic))
	if d.solicitor != nil {
		err = errors.Join(err, d.solicitor.Close())
	}
	return err
}
