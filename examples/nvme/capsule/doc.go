// Package capsule encodes and decodes the messages of NVMe over Fabrics with RDMA, for targets and
// hosts. It does no IO, and knows no queue, no controller and no clock.
//
// A capsule is one RDMAP Send message: a command of 64 octets ([SQE]), which data may follow, or a
// response of 16 octets ([CQE]). The package also encodes and decodes the private data of the connection
// set-up ([Request], [Accept], [RejectError]), and the data that RDMA Reads and Writes move: those of
// Connect, Identify and Get Log Page.
//
// All fields are little-endian. Their names are those of the specifications: NVMe over Fabrics 1.1, NVM
// Express Base 2.0 and the RDMA transport 1.0. A number that is "0's based" is one less than what it means.
//
// A command has two forms. [SQE] holds every octet: [ParseSQE] and [SQE.Append] lose nothing. The types of
// the single commands ([Connect], [Identify], [RW] and so on) hold the fields of one command: their Parse
// functions read an SQE, and their SQE methods make one. Unless the documentation says otherwise, reserved
// fields are encoded as zero, and ignored by the parsers.
//
// An error of a host is a [Status], with which the target answers. An error of a target is an error that
// matches [ErrMalformed], with which the host ends the connection.
//
// No function keeps the slices that it is passed, except for the in-capsule slice in a [Data]. No type is safe
// for concurrent use while it is changed. Commands, responses and private data are encoded and decoded
// without an allocation.
package capsule

import (
	"errors"
	"fmt"
)

// ErrMalformed is matched by the errors for invalid data from a peer.
var ErrMalformed = errors.New("nvme: malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}
