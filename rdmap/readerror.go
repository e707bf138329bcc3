package rdmap

import (
	"fmt"

	"github.com/goiwarp/iwarp/stag"
)

// A readError says which Read Request was refused, or which part of one that was
// answered in part: what a Terminate carries as the terminated RDMA header.
type readError struct {
	request ReadRequest
	cause   stag.Violation
}

func (e *readError) Error() string {
	return fmt.Sprintf("%v: Read of %d octets of %v at TO %#x", e.cause, e.request.Size, e.request.Src.STag, e.request.Src.TO)
}
