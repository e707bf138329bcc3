// Package capsule is the messages of NVMe over Fabrics with RDMA, as octets: what a target parses and
// a host makes, and the reverse. It does no IO, and knows no queue, no controller and no clock.
//
// A capsule is one RDMAP Send message: a command of 64 octets ([SQE]) with the data that it may have
// behind it, or a response of 16 octets ([CQE]). The private data of the connection set-up is made and
// parsed here too ([Request], [Accept], [RejectError]), and so is what RDMA Reads and Writes move: the data of
// Connect, of Identify and of Get Log Page.
//
// All fields are little-endian. Their names are those of the specifications: NVMe over Fabrics 1.1, NVM
// Express Base 2.0 and the RDMA transport 1.0. A number that is "0's based" is one less than what it means.
//
// A command has two forms. [SQE] holds every octet: [ParseSQE] and [SQE.Append] lose nothing. The types of
// the single commands ([Connect], [Identify], [RW] and so on) hold the fields of one command: their Parse
// functions read an SQE, and their SQE methods make one. Reserved fields are zero in what is made, and
// are not looked at in what is parsed, if the documentation does not say otherwise.
//
// What a host sent wrongly is a [Status], which the target answers with. What a target sent wrongly is an
// error that matches [ErrMalformed], with which the host ends the connection.
//
// Nothing here keeps the slices that it is given, except for the in-capsule slice in a [Data]. No type is safe
// for concurrent use while it is changed. Commands, responses and private data are encoded and decoded
// without an allocation.
package capsule

import (
	"errors"
	"fmt"
)

// ErrMalformed matches the errors of what came from a peer and is not as it must be.
var ErrMalformed = errors.New("nvme: malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}
