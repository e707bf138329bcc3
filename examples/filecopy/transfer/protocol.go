package transfer

import (
	"math"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// The control protocol. A connection serves any number of transfers, one after the
// other. Each consists of two requests of the client and two answers of the server,
// JSON objects in Sends (-->). The file itself moves by RDMA (==>).
//
//	client                           server
//	put, name, size       -->        makes a temporary file and registers it
//	                      <--        its region: STag, TO, size
//	RDMA Writes           ==>        (nothing to do)
//	done, SHA-256         -->        invalidates the region, checks the sum, renames
//	                      <--        SHA-256, counters
//
//	get, name             -->        opens the file and registers it
//	                      <--        its region
//	RDMA Read Requests    -->        (nothing to do)
//	                      <==        RDMA Read Responses
//	done                  -->        invalidates the region
//	                      <--        SHA-256, counters
//
// An answer with an error ends the transfer, but not the connection. A side whose peer breaks
// these rules ends the connection.
//
// Nothing more is needed to know when the octets of a put have arrived: a message is
// delivered only when everything sent before it has been placed (RFC 5040 section
// 5.5), so done arrives after the last RDMA Write.

// A request is a message of the client.
type request struct {
	Op   string `json:"op"`             // opPut, opGet or opDone
	Name string `json:"name,omitempty"` // of the file, with slashes, below the server's directory
	Size int64  `json:"size,omitempty"` // put
	Sum  string `json:"sum,omitempty"`  // done after put: SHA-256 in hexadecimal
}

const (
	opPut  = "put"
	opGet  = "get"
	opDone = "done"
)

// A reply is an answer of the server.
type reply struct {
	Error  string        `json:"error,omitempty"`
	Region region        `json:"region"` // to put and get
	Sum    string        `json:"sum,omitempty"`
	Stats  iwarp.QPStats `json:"stats"` // to done: the server's counters of this connection
}

// A region names a registered file to the peer. A RemoteBuffer has a 32-bit length
// but a 64-bit offset: one STag suffices for a file of any size, and the client
// addresses the parts that it moves.
type region struct {
	STag stag.STag `json:"stag"`
	TO   uint64    `json:"to"` // of the first octet
	Size int64     `json:"size"`
}

// advertise returns the region of mr, or the zero region if the file is empty and so has none.
func advertise(mr *iwarp.MR) region {
	if mr == nil {
		return region{}
	}
	start := mr.Advertise(0, 0)
	return region{STag: start.STag, TO: start.TO, Size: int64(mr.Len())}
}

// at returns the n octets at off.
func (r region) at(off int64, n int) iwarp.RemoteBuffer {
	return iwarp.RemoteBuffer{STag: r.STag, TO: r.TO + uint64(off), Len: uint32(n)}
}

const (
	// maxMessage bounds a control message; the receiver has registered this much.
	maxMessage = 8 << 10
	// maxText bounds a name and an error: JSON may encode one octet as six.
	maxText = 1 << 10
	// maxSize is the size of the largest file: an SGE counts octets as an int.
	maxSize = math.MaxInt
)
