package dump

import (
	"encoding/binary"
	"fmt"
)

// rpcProcs are the procedures of a transport header (RFC 8166 section 4.2.4).
var rpcProcs = []string{"RDMA_MSG", "RDMA_NOMSG", "RDMA_MSGP", "RDMA_DONE", "RDMA_ERROR"}

// nfs3Procs are the procedures of NFS version 3 (RFC 1813).
var nfs3Procs = []string{
	"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR",
	"RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT",
}

// An xdr reads words of four octets. Beyond the end they are 0, and short is set.
type xdr struct {
	b     []byte
	short bool
}

func (x *xdr) word() uint32 {
	if len(x.b) < 4 {
		x.b, x.short = nil, true
		return 0
	}
	v := binary.BigEndian.Uint32(x.b)
	x.b = x.b[4:]
	return v
}

// segments reads n segments of a chunk: handle, length, offset.
func (x *xdr) segments(n uint32) (octets uint64) {
	for range n {
		x.word()
		octets += uint64(x.word())
		x.word()
		x.word()
		if x.short {
			break
		}
	}
	return octets
}

// rpcMessage reads the header of an RPC over RDMA message, and the beginning of the RPC message after it (RFC 8166
// section 4). whole: b is the whole Send.
func rpcMessage(b []byte, whole bool) *Block {
	x := xdr{b: b}
	xid, version, credits, proc := x.word(), x.word(), x.word(), x.word()
	block := &Block{protocolRPC, fmt.Sprintf("procedure %d", proc), Fields{{"xid", hex32(xid)}, {"credits", credits}}}
	if int64(proc) < int64(len(rpcProcs)) {
		block.Message = rpcProcs[proc]
	}
	switch {
	case x.short:
		block.Message = fmt.Sprintf("a message of %d octets, which is none", len(b))
	case version != 1:
		block.Fields.add("version", version)
	case proc == 4:
		block.Fields.add("error", x.word())
	case proc <= 1:
		block.Fields.chunks(&x)
		if !x.short && proc == 0 {
			block.Fields.rpc(&x)
		}
	}
	if x.short && whole {
		block.Fields.add("cut_short", true)
	}
	return block
}

// chunks reads the Read list, the Write list and the Reply chunk.
func (f *Fields) chunks(x *xdr) {
	reads, readOctets := 0, uint64(0)
	for x.word() == 1 {
		x.word() // position
		readOctets += x.segments(1)
		reads++
	}
	writes, writeOctets := 0, uint64(0)
	for x.word() == 1 {
		writeOctets += x.segments(x.word())
		writes++
	}
	if reads > 0 {
		*f = append(*f, Field{"read_segments", reads}, Field{"read_octets", readOctets})
	}
	if writes > 0 {
		*f = append(*f, Field{"write_chunks", writes}, Field{"write_octets", writeOctets})
	}
	if x.word() == 1 {
		f.add("reply_octets", x.segments(x.word()))
	}
}

// rpc reads the beginning of an RPC message (RFC 5531 section 9).
func (f *Fields) rpc(x *xdr) {
	const call, reply, nfs = 0, 1, 100003
	x.word() // xid
	switch x.word() {
	case reply:
		status := x.word()
		if !x.short {
			f.add("rpc", map[bool]string{true: "reply, accepted", false: "reply, denied"}[status == 0])
		}
	case call:
		x.word() // version of RPC
		program, version, proc := x.word(), x.word(), x.word()
		switch {
		case x.short:
		case program == nfs && version == 3 && int64(proc) < int64(len(nfs3Procs)):
			f.add("rpc", "call, NFS 3 "+nfs3Procs[proc])
		default:
			f.add("rpc", fmt.Sprintf("call, program %d version %d procedure %d", program, version, proc))
		}
	}
}
