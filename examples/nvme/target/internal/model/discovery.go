package model

import "github.com/goiwarp/iwarp/examples/nvme/capsule"

// A discoveryLog is the content that a controller reads in pieces: it does not change until the host reads from
// offset 0 again.
type discoveryLog struct {
	octets []byte // nil: none yet
	genctr uint64
}

// fillDiscovery writes the discovery log (Fabrics 1.1, 5.3). If the log has changed since the snapshot that the host
// reads, the rearmed event is reported at once.
func (c *Controller) fillDiscovery(m *capsule.GetLogPage, buf []byte) capsule.Status {
	if m.Offset == 0 || c.log.octets == nil {
		c.snapshot()
	}
	status := capsule.PutLog(buf, c.log.octets, m.Offset)
	if !m.RAE && status.OK() {
		c.discovery = notice{pending: c.log.genctr != c.t.genctr}
	}
	return status
}

// snapshot makes the log for the host as of now: the discovery subsystem, and the subsystems that the host may use.
func (c *Controller) snapshot() {
	at := c.t.cfg.Advertised
	if at == (Address{}) {
		at = c.admin.local
	}
	n := uint64(0)
	log := make([]byte, capsule.DiscoveryHeaderSize, capsule.DiscoveryHeaderSize+2*capsule.DiscoveryEntrySize)
	for _, s := range c.t.subsystems {
		if !s.allows(c.hostNQN) {
			continue
		}
		e := s.entry(at, c.t.cfg.Limits.AdminEntries)
		log = append(log, make([]byte, capsule.DiscoveryEntrySize)...)
		e.Put(log[len(log)-capsule.DiscoveryEntrySize:])
		n++
	}
	capsule.DiscoveryHeader{GENCTR: c.t.genctr, NUMREC: n}.Put(log)
	c.log = discoveryLog{octets: log, genctr: c.t.genctr}
}

// entry returns the log entry of a subsystem that is reached at an address.
func (s *subsystem) entry(at Address, adminEntries int) capsule.DiscoveryEntry {
	e := capsule.DiscoveryEntry{
		TRTYPE:  capsule.TransportRDMA,
		ADRFAM:  at.Family,
		SUBTYPE: capsule.SubtypeNVM,
		PORTID:  1,
		CNTLID:  capsule.DynamicControllers,
		ASQSZ:   uint16(adminEntries),
		TRSVCID: at.Service,
		SubNQN:  s.nqn,
		TRADDR:  at.Addr,
		QPTYPE:  capsule.QPTypeConnected,
		PRTYPE:  capsule.ProviderIWARP,
		CMS:     capsule.CMSRDMACM,
	}
	if s.discovery {
		e.SUBTYPE = capsule.SubtypeDiscovery
	}
	return e
}
