package rdmap

import (
	"fmt"

	"github.com/goiwarp/iwarp/stag"
)

// A readError is the error of a Read Request that was refused, or whose remaining part was
// refused. A Terminate includes request as the terminated RDMA header.
type readError struct {
	request ReadRequest
	cause   stag.Violation
}

func (e *readError) Error() string {
	return fmt.Sprintf("%v: Read of %d octets of %v at TO %#x", e.cause, e.request.Size, e.request.Src.STag, e.request.Src.TO)
}
