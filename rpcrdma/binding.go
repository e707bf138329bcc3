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

// An ArgumentBinding is a Binding that also says which arguments of calls may come by a Read chunk of their own. A server
// refuses a call with any other argument in a Read chunk, as RFC 8166 section 6.1 demands. A Binding that is not an
// ArgumentBinding allows every argument.
type ArgumentBinding interface {
	Binding
	// Argument reports whether the opaque at offset off of a call, after its length word, may come by a Read chunk.
	Argument(prog, vers, proc uint32, call []byte, off int) bool
}

// NFSv3 is the ArgumentBinding of version 3 of NFS (RFC 8267 section 4): the data of READ and WRITE, and the path of
// READLINK and SYMLINK. It allows all arguments of other programs and versions.
type NFSv3 struct{}

var _ ArgumentBinding = NFSv3{}

const (
	programNFS   = 100003
	procReadlink = 5
	procRead     = 6
	procWrite    = 7
	procSymlink  = 10
)

func ofNFSv3(prog, vers uint32) bool { return prog == programNFS && vers == 3 }

// Result implements Binding.
func (NFSv3) Result(prog, vers, proc uint32, reply []byte) (off, n int, ok bool) {
	if !ofNFSv3(prog, vers) || proc != procRead && proc != procReadlink {
		return 0, 0, false
	}
	r := xdr{b: reply}
	r.skip(4) // xid
	const typeReply, accepted, success = 1, 0, 0
	r.want(typeReply)
	r.want(accepted)
	r.skip(4) // flavor of the verifier
	r.opaque()
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

// Argument implements ArgumentBinding.
func (NFSv3) Argument(prog, vers, proc uint32, call []byte, off int) bool {
	if !ofNFSv3(prog, vers) {
		return true
	}
	r := xdr{b: call}
	r.skip(24)    // xid, CALL, version of RPC, program, version, procedure
	for range 2 { // the credential, and the verifier
		r.skip(4) // its flavor
		r.opaque()
	}
	r.opaque() // file handle
	switch proc {
	case procWrite:
		r.skip(16) // offset, count, stable
	case procSymlink:
		r.opaque() // name
		r.attributes()
	default:
		return false
	}
	r.skip(4) // length
	return !r.bad && r.at == off
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

func (r *xdr) opaque() { r.skip(wire.Padded(uint64(r.word()))) }

// attributes skips the sattr3 of a file to be created (RFC 1813 section 2.5).
func (r *xdr) attributes() {
	for _, n := range []uint64{4, 4, 4, 8} { // mode, uid, gid, size
		if r.word() != 0 {
			r.skip(n)
		}
	}
	for range 2 { // atime, mtime
		const ofTheClient = 2
		if r.word() == ofTheClient {
			r.skip(8)
		}
	}
}

func (r *xdr) want(w uint32) {
	if r.word() != w {
		r.bad = true
	}
}
