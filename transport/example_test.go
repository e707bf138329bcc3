package transport_test

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/transport"
)

// A Fault contains the three numbers of the Terminate message that reports it.
func ExampleFault() {
	err := fmt.Errorf("receiving: %w", transport.Faultf(transport.DDPTooLong, "512 octets for a receive of 256"))
	var fault *transport.Fault
	if errors.As(err, &fault) {
		fmt.Println(fault.Code)
		fmt.Println(fault.Code.Layer(), fault.Code.Type(), fault.Code.Code(), fault.Err)
	}
	// Output:
	// DDP untagged buffer: message too long for its buffer (1/2/05)
	// 1 2 5 512 octets for a receive of 256
}
