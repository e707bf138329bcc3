package dump

import (
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// adminCommands are the names of the commands on queue 0.
var adminCommands = map[capsule.Opcode]string{
	0x00: "Delete I/O SQ", 0x01: "Create I/O SQ", capsule.OpGetLogPage: "Get Log Page", 0x04: "Delete I/O CQ", 0x05: "Create I/O CQ",
	capsule.OpIdentify: "Identify", capsule.OpAbort: "Abort", capsule.OpSetFeatures: "Set Features", capsule.OpGetFeatures: "Get Features",
	capsule.OpAsyncEvent: "Asynchronous Event Request", capsule.OpKeepAlive: "Keep Alive",
}

// ioCommands are the names of the commands on the other queues.
var ioCommands = map[capsule.Opcode]string{
	capsule.OpFlush: "Flush", capsule.OpWrite: "Write", capsule.OpRead: "Read", 0x04: "Write Uncorrectable", capsule.OpCompare: "Compare",
	capsule.OpWriteZeroes: "Write Zeroes", capsule.OpDSM: "Dataset Management", 0x0c: "Verify",
}

// nvme reads a capsule.
func (u *ulp) nvme(dir int, b []byte) *Block {
	if dir != u.initiator {
		r, err := capsule.ParseCQE(b)
		if err != nil {
			return &Block{protocolNVMe, fmt.Sprintf("a response of %d octets, which is none", len(b)), nil}
		}
		return &Block{protocolNVMe, "response", Fields{
			{"cid", r.CID}, {"status", r.Status.String()}, {"result", hex64(r.Value())}, {"sqhd", r.SQHD}, {"sqid", r.SQID},
		}}
	}
	q, data, err := capsule.ParseSQE(b)
	if err != nil {
		return &Block{protocolNVMe, fmt.Sprintf("a command of %d octets, which is none", len(b)), nil}
	}
	block := &Block{protocolNVMe, u.command(&q), Fields{{"cid", q.CID}}}
	if q.Opcode != capsule.OpFabrics {
		block.Fields.add("nsid", q.NSID)
	}
	u.parameters(block, &q)
	if n := q.SGL.Length(); n > 0 {
		block.Fields.add("data", n)
		if q.SGL.Type() != capsule.SGLInCapsule {
			block.Fields.add("stag", hex32(q.SGL.Key()))
			block.Fields.add("to", hex64(q.SGL.Address()))
		}
	}
	if len(data) > 0 {
		block.Fields.add("in_capsule", len(data))
	}
	return block
}

// command returns the name of a command.
func (u *ulp) command(q *capsule.SQE) string {
	names := ioCommands
	switch {
	case q.Opcode == capsule.OpFabrics:
		return q.FCType().String()
	case !u.nvmeAsked: // it is unknown which queue this is
		return fmt.Sprintf("opcode %#02x", uint8(q.Opcode))
	case u.qid == 0:
		names = adminCommands
	}
	if name, ok := names[q.Opcode]; ok {
		return name
	}
	return fmt.Sprintf("opcode %#02x", uint8(q.Opcode))
}

// parameters adds the parameters of the most common commands.
func (u *ulp) parameters(block *Block, q *capsule.SQE) {
	switch {
	case q.Opcode == capsule.OpFabrics:
		block.fabrics(q)
	case !u.nvmeAsked:
	case u.qid == 0:
		if name := adminParameters[q.Opcode]; name != "" {
			block.Fields.add(name, q.CDW10&0xff)
		}
	case q.Opcode == capsule.OpRead || q.Opcode == capsule.OpWrite:
		block.Fields.add("lba", uint64(q.CDW11)<<32|uint64(q.CDW10))
		block.Fields.add("blocks", q.CDW12&0xffff+1)
	}
}

// adminParameters names the meaning of the lowest octet of CDW10.
var adminParameters = map[capsule.Opcode]string{
	capsule.OpIdentify: "cns", capsule.OpSetFeatures: "feature", capsule.OpGetFeatures: "feature", capsule.OpGetLogPage: "log",
}

// fabrics adds the parameters of a Fabrics command.
func (x *Block) fabrics(q *capsule.SQE) {
	switch q.FCType() {
	case capsule.FCConnect:
		c := capsule.ParseConnect(q)
		x.Fields.add("qid", c.QID)
		x.Fields.add("sqsize", c.SQSize)
		x.Fields.add("kato_ms", c.KATO)
	case capsule.FCPropertyGet, capsule.FCPropertySet:
		p := capsule.ParseProperty(q)
		x.Fields.add("offset", hex64(uint64(p.Offset)))
		if q.FCType() == capsule.FCPropertySet {
			x.Fields.add("value", hex64(p.Value))
		}
	case capsule.FCAuthSend, capsule.FCAuthReceive, capsule.FCDisconnect:
	}
}
