package model

import (
	"math"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// setFeatures executes Set Features (Base 2.0, 5.27).
func (q *Queue) setFeatures(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	m := capsule.ParseSetFeatures(c)
	ctrl := q.ctrl
	var res result
	switch {
	case m.Save:
		res = failed(capsule.StatusFeatureNotSaveable)
	case !ctrl.hasFeature(m.FID):
		res = failed(ctrl.noFeature())
	case m.FID == capsule.FeatureVWC:
		return q.setCache(m.Value&capsule.VWCEnabled != 0, c, d, out)
	case m.FID == capsule.FeatureQueues:
		res = ctrl.setQueues(capsule.ParseQueueCount(m.Value))
	case m.FID == capsule.FeatureAsyncEvents:
		ctrl.enabled = m.Value & ctrl.oaes()
		res = succeeded(uint64(ctrl.enabled))
		return ctrl.deliver(q.reply(c.CID, d, res, out))
	case m.FID == capsule.FeatureKATO:
		res = ctrl.setKATO(m.Value)
	default: // FeatureHostID is that of Connect
		res = failed(capsule.StatusSequenceError)
	}
	return q.reply(c.CID, d, res, out)
}

// getFeatures executes Get Features (Base 2.0, 5.15).
func (q *Queue) getFeatures(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	m := capsule.ParseGetFeatures(c)
	switch {
	case !q.ctrl.hasFeature(m.FID):
		return q.reply(c.CID, d, failed(q.ctrl.noFeature()), out)
	case m.Select > capsule.SelectDefault:
		return q.reply(c.CID, d, failed(capsule.StatusInvalidField), out)
	case m.FID != capsule.FeatureHostID:
		return q.reply(c.CID, d, succeeded(q.ctrl.feature(m.FID, m.Select)), out)
	case m.Value&1 == 0: // an identifier of 8 octets
		return q.reply(c.CID, d, failed(capsule.StatusInvalidField), out)
	}
	if s := d.Exactly(uint64(len(q.ctrl.hostID))); !s.OK() {
		return q.reply(c.CID, d, failed(s), out)
	}
	return q.later(DoFill, toFill, c, d, out)
}

// hasFeature reports whether the controller has a feature. The feature for the cache exists only if there is a cache.
func (c *Controller) hasFeature(fid uint8) bool {
	switch fid {
	case capsule.FeatureAsyncEvents, capsule.FeatureKATO:
		return true
	case capsule.FeatureQueues, capsule.FeatureHostID:
		return !c.sub.discovery
	case capsule.FeatureVWC:
		return len(c.sub.namespaces.Load().volatile) > 0
	}
	return false
}

// noFeature returns the answer for a feature that the controller does not have.
func (c *Controller) noFeature() capsule.Status {
	if c.sub.discovery {
		return capsule.StatusInvalidOpcode
	}
	return capsule.StatusInvalidField
}

// feature returns the current or default value of a feature.
func (c *Controller) feature(fid, which uint8) uint64 {
	current := which == capsule.SelectCurrent
	switch fid {
	case capsule.FeatureVWC:
		if current && c.cacheOff.Load() {
			return 0
		}
		return capsule.VWCEnabled
	case capsule.FeatureQueues:
		n := c.t.cfg.Limits.IOQueues
		if current {
			n = c.granted
		}
		return uint64(capsule.Queues(n).Value())
	case capsule.FeatureAsyncEvents:
		if current {
			return uint64(c.enabled)
		}
	case capsule.FeatureKATO:
		if current {
			return uint64(c.katoMS)
		}
	}
	return 0
}

// setCache switches the volatile caches on or off. When they are off, writes that are not completed yet are durable at their
// response; completed writes are flushed before the answer. Another command that switches the caches off may still be waiting
// for such a flush, so this command has its own. If the flush fails, the caches stay off: the host may have been told before
// that they are off.
func (q *Queue) setCache(on bool, c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	if q.ctrl.cacheOff.Store(!on); on {
		return q.reply(c.CID, d, succeeded(0), out)
	}
	out = q.later(DoExecute, queued, c, d, out)
	a := &out[len(out)-1]
	a.Op = Op{Kind: OpFlush, Namespaces: q.ctrl.sub.namespaces.Load().volatile}
	return out
}

// CacheOff reports whether changes of a namespace must be durable when Finish is called, whatever Op.FUA says: the host may have
// switched the caches off since DoExecute. It may be called only for commands that have begun, so that there is a controller.
func (q *Queue) CacheOff() bool { return q.ctrl.cacheOff.Load() }

// setQueues grants I/O queues while none exist.
func (c *Controller) setQueues(asked capsule.QueueCount) result {
	if c.io > 0 {
		return failed(capsule.StatusSequenceError)
	}
	if s := asked.Check(); !s.OK() {
		return failed(s)
	}
	c.granted = min(asked.Pairs(), c.t.cfg.Limits.IOQueues)
	return succeeded(uint64(capsule.Queues(c.granted).Value()))
}

// setKATO sets the keep alive timeout. The command itself has restarted the timer.
func (c *Controller) setKATO(ms uint32) result {
	if time.Duration(ms)*time.Millisecond > c.t.cfg.MaxKATO {
		return failed(capsule.StatusInvalidKATO)
	}
	c.katoMS = roundKATO(ms)
	return succeeded(0)
}

// roundKATO rounds a timeout up to the granularity of the timer, both in milliseconds.
func roundKATO(ms uint32) uint32 {
	const unit = kas * capsule.KASUnit
	if ms > math.MaxUint32-(unit-1) {
		return math.MaxUint32 / unit * unit
	}
	return (ms + unit - 1) / unit * unit
}

// expiry returns when the keep alive timer expires (Base 2.0, 5.27.1.12).
func (c *Controller) expiry() time.Duration {
	timeout := time.Duration(c.katoMS) * time.Millisecond
	switch {
	case c.katoMS == 0 && !c.sub.discovery:
		return Never
	case c.katoMS == 0:
		timeout = c.t.cfg.DiscoveryIdle
	}
	return time.Duration(c.heard.Load()) + timeout
}
