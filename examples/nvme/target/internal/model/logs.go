package model

import "github.com/goiwarp/iwarp/examples/nvme/capsule"

// A logPage says how to write a log page to a buffer of zeros.
type logPage struct {
	discovery, io bool // which controllers support it
	fill          func(c *Controller, m *capsule.GetLogPage, buf []byte) capsule.Status
}

var logPages = map[uint8]*logPage{
	capsule.LogError:             {true, true, (*Controller).fillZeros},
	capsule.LogSMART:             {true, true, (*Controller).fillSMART},
	capsule.LogFirmware:          {false, true, (*Controller).fillFirmware},
	capsule.LogChangedNamespaces: {false, true, (*Controller).fillChanged},
	capsule.LogEffects:           {false, true, (*Controller).fillEffects},
	capsule.LogDiscovery:         {true, false, (*Controller).fillDiscovery},
}

// page finds a log page. It returns nil if the controller has none with the identifier.
func (c *Controller) page(lid uint8) *logPage {
	p := logPages[lid]
	if p == nil || c.sub.discovery && !p.discovery || !c.sub.discovery && !p.io {
		return nil
	}
	return p
}

// getLogPage checks what can be checked without the log (Base 2.0, 5.16).
func (q *Queue) getLogPage(c *capsule.SQE, d *capsule.Data, out []Action) []Action {
	m := capsule.ParseGetLogPage(c)
	status := m.Check(d, min(uint64(q.t.cfg.MaxLog), q.t.cfg.maxTransfer()))
	switch {
	case q.ctrl.page(m.LID) != nil:
	case q.ctrl.sub.discovery:
		status = capsule.StatusInvalidOpcode
	default:
		status = capsule.StatusInvalidLogPage
	}
	if !status.OK() {
		return q.reply(c.CID, d, failed(status), out)
	}
	return q.later(DoFill, toFill, c, d, out)
}

func (c *Controller) fillLog(m capsule.GetLogPage, buf []byte) capsule.Status {
	return c.page(m.LID).fill(c, &m, buf)
}

// fillZeros writes the error log, which is always empty.
func (c *Controller) fillZeros(m *capsule.GetLogPage, buf []byte) capsule.Status {
	var log [capsule.ErrorEntrySize]byte
	return capsule.PutLog(buf, log[:], m.Offset)
}

func (c *Controller) fillSMART(m *capsule.GetLogPage, buf []byte) capsule.Status {
	var log [capsule.SMARTSize]byte
	if !c.sub.discovery {
		n := &c.sub.counters
		smart := capsule.SMART{
			Temperature:    300,
			Spare:          100,
			SpareThreshold: 10,
			UnitsRead:      capsule.DataUnits(n.octetsRead.Load()),
			UnitsWritten:   capsule.DataUnits(n.octetsWritten.Load()),
			Reads:          n.reads.Load(),
			Writes:         n.writes.Load(),
		}
		smart.Put(log[:])
	}
	return capsule.PutLog(buf, log[:], m.Offset)
}

func (c *Controller) fillFirmware(m *capsule.GetLogPage, buf []byte) capsule.Status {
	var log [capsule.FirmwareSize]byte
	(&capsule.Firmware{AFI: 1, FRS: [7]string{c.t.cfg.Firmware}}).Put(log[:])
	return capsule.PutLog(buf, log[:], m.Offset)
}

// fillChanged writes the log of changed namespaces. When the host has read the whole log, the event is rearmed; if it
// has read only a part, the rearmed event is reported at once.
func (c *Controller) fillChanged(m *capsule.GetLogPage, buf []byte) capsule.Status {
	var log [capsule.ChangedNamespacesSize]byte
	capsule.PutChangedNamespaces(log[:], c.changed)
	status := capsule.PutLog(buf, log[:], m.Offset)
	if m.RAE || !status.OK() {
		return status
	}
	// If the namespaces do not fit, one entry stands for all of them.
	entries := len(c.changed)
	if entries > capsule.MaxNamespaces {
		entries = 1
	}
	whole := m.Offset == 0 && len(buf) >= 4*entries
	if whole {
		c.changed = c.changed[:0]
	}
	c.namespaces = notice{pending: !whole}
	return status
}

func (c *Controller) fillEffects(m *capsule.GetLogPage, buf []byte) capsule.Status {
	var log [capsule.EffectsSize]byte
	var e capsule.Effects
	for _, op := range []capsule.Opcode{
		capsule.OpGetLogPage, capsule.OpIdentify, capsule.OpAbort, capsule.OpSetFeatures, capsule.OpGetFeatures,
		capsule.OpAsyncEvent, capsule.OpKeepAlive,
	} {
		e.Admin[op] = capsule.EffectSupported
	}
	for _, op := range []capsule.Opcode{capsule.OpFlush, capsule.OpRead} {
		e.IO[op] = capsule.EffectSupported
	}
	for _, op := range []capsule.Opcode{capsule.OpWrite, capsule.OpWriteZeroes, capsule.OpDSM} {
		e.IO[op] = capsule.EffectSupported | capsule.EffectLBCC
	}
	if c.t.cfg.Compare {
		e.IO[capsule.OpCompare] = capsule.EffectSupported
	}
	if !c.sub.trims() {
		e.IO[capsule.OpDSM] = 0
	}
	e.Put(log[:])
	return capsule.PutLog(buf, log[:], m.Offset)
}
