package rpcrdma

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// A Binding says what of an RPC program may move by RDMA: an upper-layer binding (RFC 8166 section 6).
type Binding interface {
	// Result finds the opaque of a reply that goes by a Write chunk: n octets at off, excluding the length word
	// before them and the pad after them. ok is false if the reply has none.
	Result(prog, vers, proc uint32, reply []byte) (off, n int, ok bool)
}

// NFSv3 is the Binding of version 3 of NFS (RFC 8267 section 4): the data of READ, and the path of READLINK.
type NFSv3 struct{}

const (
	programNFS   = 100003
	procReadlink = 5
	procRead     = 6
)

// Result implements Binding.
func (NFSv3) Result(prog, vers, proc uint32, reply []byte) (off, n int, ok bool) {
	if prog != programNFS || vers != 3 || proc != procRead && proc != procReadlink {
		return 0, 0, false
	}
	r := xdr{b: reply}
	r.skip(4) // xid
	const typeReply, accepted, success = 1, 0, 0
	r.want(typeReply)
	r.want(accepted)
	r.skip(4) // flavor of the verifier
	r.skip(wire.Padded(uint64(r.word())))
	r.want(success)
	r.want(0)          // NFS3_OK
	if r.word() != 0 { // attributes follow
		r.skip(84)
	}
	if proc == procRead {
		r.skip(8) // count, eof
	}
	length := uint64(r.word())
	off = r.at
	r.skip(wire.Padded(length))
	if r.bad {
		return 0, 0, false
	}
	return off, int(length), true
}

// An xdr reads words of a message, until one is invalid.
type xdr struct {
	b   []byte
	at  int
	bad bool
}

func (r *xdr) skip(n uint64) {
	if r.bad || n > uint64(len(r.b)-r.at) {
		r.bad = true
		return
	}
	r.at += int(n)
}

func (r *xdr) word() uint32 {
	r.skip(4)
	if r.bad {
		return 0
	}
	return binary.BigEndian.Uint32(r.b[r.at-4:])
}

func (r *xdr) want(w uint32) {
	if r.word() != w {
		r.bad = true
	}
}
