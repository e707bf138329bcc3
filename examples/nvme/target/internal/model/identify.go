package model

import "github.com/goiwarp/iwarp/examples/nvme/capsule"

// kas is the granularity of the keep alive timer, in capsule.KASUnit.
const kas = 10

// fillIdentify writes the data of Identify to a page of zeros (Base 2.0, 5.17).
func (c *Controller) fillIdentify(m capsule.Identify, page []byte) capsule.Status {
	switch m.CNS {
	case capsule.CNSController:
		d := c.identifyController()
		if d.VWC == 0 { // the host never sends a Flush, even to namespaces that are added later: Linux reads VWC once
			c.cacheOff.Store(true)
		}
		d.Put(page)
		return capsule.Success
	case capsule.CNSNamespace:
		return c.identifyNamespace(m.NSID, page)
	case capsule.CNSNamespaceList:
		if m.NSID >= capsule.BroadcastNSID-1 {
			return capsule.StatusInvalidNamespace
		}
		capsule.PutNamespaceList(page, c.sub.namespaces.Load().ids, m.NSID)
		return capsule.Success
	case capsule.CNSDescriptors:
		n := c.sub.namespaces.Load().get(m.NSID)
		if n == nil {
			return capsule.StatusInvalidNamespace
		}
		(&capsule.Descriptors{UUID: n.UUID, NGUID: n.NGUID}).Put(page)
		return capsule.Success
	case capsule.CNSCommandSet:
		return c.identifyCommandSet(m.CSI, page)
	}
	return capsule.StatusInvalidField
}

// identifyNamespace writes the data of a namespace, and nothing if the NSID is valid but inactive.
func (c *Controller) identifyNamespace(nsid uint32, page []byte) capsule.Status {
	if nsid == 0 || uint64(nsid) > uint64(c.t.cfg.Limits.NamespaceCount) {
		return capsule.StatusInvalidNamespace
	}
	if n := c.sub.namespaces.Load().get(nsid); n != nil {
		d := n.identify()
		d.Put(page)
	}
	return capsule.Success
}

// usualLBADS is the LBADS of 4,096 octets. Hardly any namespace has larger LBAs.
const usualLBADS = 12

// identifyCommandSet writes the limits of NVM commands. Namespaces come and go, and their LBAs differ in size, so the reported limit
// of a range is that of the largest LBAs among them, but at most that of the usual LBAs.
func (c *Controller) identifyCommandSet(csi uint8, page []byte) capsule.Status {
	if csi != 0 {
		return capsule.StatusInvalidField
	}
	d := capsule.IdentifyNVM{DMRSL: maxTrim >> usualLBADS}
	for _, n := range c.sub.namespaces.Load().byID {
		if n != nil {
			d.DMRSL = min(d.DMRSL, n.maxBlocks)
		}
	}
	d.Put(page)
	return capsule.Success
}

func (c *Controller) identifyController() capsule.IdentifyController {
	cfg := &c.t.cfg
	d := capsule.IdentifyController{
		SN: c.sub.serial, MN: c.sub.model, FR: cfg.Firmware,
		CNTLID:    c.id,
		VER:       capsule.Version13,
		OAES:      c.oaes(),
		CTRATT:    capsule.CTRATTHostID128,
		CNTRLTYPE: capsule.ControllerDiscovery,
		AERL:      aerl,
		LPA:       capsule.LPAExtendedData,
		KAS:       kas,
		MAXCMD:    uint16(cfg.Limits.QueueEntries),
		SGLS:      capsule.SGLSSupported | capsule.SGLSKeyed,
		SubNQN:    c.sub.nqn,
		MSDBD:     1,
	}
	if cfg.InCapsule > 0 {
		d.SGLS |= capsule.SGLSInCapsule
	}
	if !c.sub.discovery {
		c.identifyIO(&d)
	}
	return d
}

// identifyIO adds the fields of I/O controllers that discovery controllers lack.
func (c *Controller) identifyIO(d *capsule.IdentifyController) {
	cfg := &c.t.cfg
	d.RAB = 6
	d.CMIC = capsule.CMICControllers
	d.MDTS = cfg.MDTS
	d.CTRATT |= capsule.CTRATTTrafficBased
	d.CNTRLTYPE = capsule.ControllerIO
	d.ACL = abortLimit
	d.FRMW = 0x03 // one slot, read-only
	d.LPA |= capsule.LPAEffects
	d.SQES, d.CQES = capsule.EntrySizes64, capsule.EntrySizes16
	d.NN = uint32(cfg.Limits.NamespaceCount)
	d.MNAN = d.NN
	d.IOCCSZ = uint32(capsule.SQESize+cfg.InCapsule) / 16
	d.IORCSZ = capsule.CQESize / 16
	d.ONCS = capsule.ONCSWriteZeroes
	if cfg.Compare {
		d.ONCS |= capsule.ONCSCompare
	}
	if c.sub.trims() {
		d.ONCS |= capsule.ONCSDSM
	}
	if len(c.sub.namespaces.Load().volatile) > 0 {
		d.VWC = capsule.VWCPresent | capsule.VWCFlushAll
	}
}

// trims reports whether all namespaces support Dataset Management.
func (s *subsystem) trims() bool {
	for _, n := range s.namespaces.Load().byID {
		if n != nil && !n.Trims {
			return false
		}
	}
	return true
}

// oaes returns the events that the controller can report.
func (c *Controller) oaes() uint32 {
	if c.sub.discovery {
		return capsule.NoticeDiscovery
	}
	return capsule.NoticeNamespaces
}
