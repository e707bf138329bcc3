package iwarp_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A server registers memory, and a client writes to it and reads it back. The server sends
// the RemoteBuffer of the memory as private data when it accepts the connection.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rnic := must(iwarp.Open(nil))
	defer func() { check(rnic.Shutdown(ctx)) }() // unlike Close, completes outstanding work
	pd := must(rnic.AllocPD())

	// The server registers memory. Its program takes no part in the transfers below.
	region := must(pd.RegisterMR(make([]byte, 1<<20), stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil))
	listener := must(rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil))
	go func() {
		request := must(listener.Accept(ctx))
		rb := must(region.Advertise(0, 1<<20).AppendBinary(nil))
		must(request.Accept(ctx, &iwarp.QPConfig{PD: pd, PrivateData: rb}))
	}()

	// The client, here in the same process, receives the RemoteBuffer of that memory.
	qp := must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd}))
	var rb iwarp.RemoteBuffer
	check(rb.UnmarshalBinary(qp.PrivateData()))
	remote := qp.Remote(rb)                                   // an io.ReaderAt and io.WriterAt
	must(remote.WriteAt([]byte("hello, remote memory"), 512)) // an RDMA Write
	p := make([]byte, 20)
	must(remote.ReadAt(p, 512)) // an RDMA Read
	fmt.Printf("%s, region of %d octets\n", p, rb.Len)
	// Output: hello, remote memory, region of 1048576 octets
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
