package iwarp_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A server lends memory to a client, which writes to it and reads it back. Where the
// memory is goes with the server's answer to the connection request.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rnic := must(iwarp.Open(nil))
	defer func() { check(rnic.Shutdown(ctx)) }() // what was sent arrives; Close would be at once
	pd := must(rnic.AllocPD())

	// The server registers memory. From then on its program has nothing to do.
	lent := must(pd.RegisterMR(make([]byte, 1<<20), stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil))
	listener := must(rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil))
	go func() {
		request := must(listener.Accept(ctx))
		where := must(lent.Advertise(0, 1<<20).AppendBinary(nil))
		must(request.Accept(ctx, &iwarp.QPConfig{PD: pd, PrivateData: where}))
	}()

	// The client, here in the same process, learns where the memory is.
	qp := must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd}))
	var where iwarp.RemoteBuffer
	check(where.UnmarshalBinary(qp.PrivateData()))
	remote := qp.Remote(where)                             // an io.ReaderAt and io.WriterAt
	must(remote.WriteAt([]byte("hello, far memory"), 512)) // an RDMA Write
	p := make([]byte, 17)
	must(remote.ReadAt(p, 512)) // an RDMA Read
	fmt.Printf("%s, %d octets lent\n", p, where.Len)
	// Output: hello, far memory, 1048576 octets lent
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
