package host

import (
	"bytes"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// execute carries a command out.
func (c *call) execute() {
	switch {
	case c.Opcode == capsule.OpFabrics:
		c.fabrics()
	case c.q.qid == 0:
		c.admin()
	default:
		c.io()
	}
}

func (c *call) fabrics() {
	q := c.q
	p := capsule.ParseProperty(&c.SQE)
	switch c.FCType() {
	case capsule.FCConnect:
		c.connect()
	case capsule.FCPropertyGet:
		v := map[uint32]uint64{
			capsule.PropCAP: q.tg.cap.Value(), capsule.PropVS: uint64(q.tg.version),
			capsule.PropCC: uint64(q.cc.Value()), capsule.PropCSTS: uint64(q.csts().Value()),
		}
		c.answer(v[p.Offset], capsule.Success)
	case capsule.FCPropertySet:
		q.cc = capsule.ParseCC(uint32(p.Value))
		c.answer(0, capsule.Success)
	default:
		c.answer(0, capsule.StatusInvalidOpcode)
	}
}

func (q *targetQueue) csts() capsule.CSTS {
	s := capsule.CSTS{RDY: q.cc.EN}
	if q.cc.SHN != capsule.SHNNone {
		s.SHST = capsule.SHSTComplete
	}
	return s
}

func (c *call) connect() {
	data, err := c.fetch()
	if err != nil {
		return
	}
	d, _ := capsule.ParseConnectData(data)
	tg := c.q.tg
	tg.mu.Lock()
	tg.connects = append(tg.connects, d)
	cntlid := d.CNTLID
	if c.q.qid == 0 {
		tg.cntlid++
		cntlid = tg.cntlid
	}
	tg.mu.Unlock()
	c.q.sub, c.q.cntlid = d.SubNQN, cntlid
	c.answer(uint64(cntlid), capsule.Success)
}

func (c *call) admin() {
	tg := c.q.tg
	switch c.Opcode {
	case capsule.OpIdentify:
		page := make([]byte, capsule.PageSize)
		status := c.identify(page)
		if status.OK() && c.put(0, page) != nil {
			return
		}
		c.answer(0, status)
	case capsule.OpGetLogPage:
		m := capsule.ParseGetLogPage(&c.SQE)
		log := make([]byte, m.Length())
		tg.mu.Lock()
		switch m.LID {
		case capsule.LogDiscovery:
			capsule.PutLog(log, tg.log, m.Offset)
		case capsule.LogChangedNamespaces:
			capsule.PutChangedNamespaces(log, tg.changed)
			tg.changed = nil
		}
		tg.mu.Unlock()
		if c.put(0, log) == nil {
			c.answer(0, capsule.Success)
		}
	case capsule.OpSetFeatures:
		m := capsule.ParseSetFeatures(&c.SQE)
		if m.FID == capsule.FeatureQueues {
			m.Value = capsule.Queues(tg.granted).Value()
		}
		c.answer(uint64(m.Value), capsule.Success)
	case capsule.OpAsyncEvent: // parked
	default:
		c.answer(0, capsule.Success)
	}
}

func (c *call) identify(page []byte) capsule.Status {
	tg := c.q.tg
	m := capsule.ParseIdentify(&c.SQE)
	tg.mu.Lock()
	defer tg.mu.Unlock()
	v := tg.namespaces[m.NSID]
	switch m.CNS {
	case capsule.CNSController:
		id := tg.id
		if c.q.sub == capsule.DiscoveryNQN {
			id = tg.discovery
		}
		// A test may set another CNTLID than the one that Connect gave.
		if id.CNTLID == 1 {
			id.CNTLID = c.q.cntlid
		}
		id.Put(page)
	case capsule.CNSNamespaceList:
		var ids []uint32
		for nsid := uint32(1); nsid < 5000; nsid++ {
			if tg.namespaces[nsid] != nil {
				ids = append(ids, nsid)
			}
		}
		capsule.PutNamespaceList(page, ids, m.NSID)
	case capsule.CNSNamespace:
		if v != nil {
			v.id.Put(page)
		}
	case capsule.CNSDescriptors:
		if v == nil {
			return capsule.StatusInvalidNamespace
		}
		v.names.Put(page)
	case capsule.CNSCommandSet:
		(&capsule.IdentifyNVM{}).Put(page)
	}
	return capsule.Success
}

func (c *call) io() {
	c.q.tg.mu.Lock()
	v := c.q.tg.namespaces[c.NSID]
	c.q.tg.mu.Unlock()
	if v == nil {
		c.answer(0, capsule.StatusInvalidNamespace)
		return
	}
	m := capsule.ParseRW(&c.SQE)
	switch c.Opcode {
	case capsule.OpRead:
		if c.put(0, v.read(c.q.tg, m)) != nil {
			return
		}
		c.answer(0, capsule.Success)
	case capsule.OpWrite, capsule.OpCompare:
		p, err := c.fetch()
		if err != nil {
			return
		}
		status := capsule.Success
		if c.Opcode == capsule.OpWrite {
			v.write(c.q.tg, m, p)
		} else if !bytes.Equal(p, v.read(c.q.tg, m)) {
			status = capsule.StatusCompareFailure
		}
		c.answer(0, status)
	case capsule.OpWriteZeroes:
		v.write(c.q.tg, m, make([]byte, m.Blocks()*v.blockSize()))
		c.answer(0, capsule.Success)
	default:
		if c.data.Kind == capsule.DataKeyed {
			if _, err := c.fetch(); err != nil {
				return
			}
		}
		c.answer(0, capsule.Success)
	}
}

func (v *volume) blockSize() uint64 { return 1 << v.id.LBAF[0].LBADS }

func (v *volume) read(tg *target, m capsule.RW) []byte {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	p := make([]byte, m.Blocks()*v.blockSize())
	for i := range m.Blocks() {
		copy(p[i*v.blockSize():], v.blocks[m.SLBA+i])
	}
	return p
}

func (v *volume) write(tg *target, m capsule.RW, p []byte) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	for i := range m.Blocks() {
		v.blocks[m.SLBA+i] = bytes.Clone(p[i*v.blockSize():][:v.blockSize()])
	}
}
