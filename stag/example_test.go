package stag_test

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/stag"
)

// How an RDMA Write is processed: the access is checked, and the octets are placed while the
// region is pinned. When the region has been invalidated nothing is placed any more.
func Example() {
	table := stag.NewTable()
	stream := stag.Scope{PD: 1, Stream: 1}
	memory := make([]byte, 16)
	region, err := table.Register(memory, stag.Options{Access: stag.LocalWrite | stag.RemoteWrite, BaseTO: 1000, Scope: stream})
	if err != nil {
		panic(err)
	}

	write := func(to uint64, p string) {
		r, off, violation := table.Pin(stream, region.STag(), stag.RemoteWrite, to, len(p))
		if violation != stag.None {
			fmt.Println("refused:", violation)
			return
		}
		defer r.Unpin()
		fmt.Println("placed:", r.Place(off, []byte(p)) == nil)
	}
	write(1004, "hello")
	write(1012, "hello") // one octet too many
	if err := table.Invalidate(context.Background(), region); err != nil {
		panic(err)
	}
	write(1004, "HELLO")
	fmt.Printf("%q\n", memory[4:9])
	// Output:
	// placed: true
	// refused: base or bounds violation
	// refused: invalid STag
	// "hello"
}
