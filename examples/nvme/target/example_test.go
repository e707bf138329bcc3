package target_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/examples/nvme/target"
)

const disk = "nqn.2026-11.org.example:disk"

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A target has one namespace in memory, and a host writes to it and reads. A Linux host would connect with "nvme connect
// -t rdma".
func Example() {
	ctx := context.Background()
	t := must(target.New(nil))
	medium := must(backend.Open("mem:16MiB"))
	check(t.AddSubsystem(target.Subsystem{NQN: disk}))
	check(t.AddNamespace(disk, target.Namespace{NSID: 1, Backend: medium}))
	l := must(t.Listen(ctx, "tcp", "127.0.0.1:0"))
	served := make(chan error, 1)
	go func() { served <- t.Serve(ctx, l) }()

	for _, e := range must(host.Discover(ctx, l.Addr().String(), nil)) {
		fmt.Println(e.SubNQN)
	}
	c := must(host.Connect(ctx, l.Addr().String(), disk, nil))
	n := must(c.Namespaces(ctx))[0]
	block := make([]byte, n.BlockSize())
	copy(block, "something to keep")
	must(n.WriteAt(block, 0))
	check(n.Flush(ctx)) // on a disk it would be durable now
	clear(block)
	must(n.ReadAt(block, 0))
	fmt.Printf("%d octets of %d: %s\n", len(block), n.Size(), block[:17])
	check(c.Close())

	check(l.Close())
	fmt.Println(errors.Is(<-served, net.ErrClosed))
	check(t.Shutdown(ctx)) // flushes, and waits for what is running
	check(medium.Close())
	// Output:
	// nqn.2014-08.org.nvmexpress.discovery
	// nqn.2026-11.org.example:disk
	// 4096 octets of 16777216: something to keep
	// true
}

// A namespace grows while a host uses it, and the host is told.
func ExampleTarget_Resize() {
	ctx := context.Background()
	t := must(target.New(nil))
	small, large := must(backend.Open("mem:1MiB")), must(backend.Open("mem:4MiB"))
	check(t.AddSubsystem(target.Subsystem{NQN: disk}))
	check(t.AddNamespace(disk, target.Namespace{NSID: 1, Backend: small}))
	l := must(t.Listen(ctx, "pipe", ""))
	go func() { _ = t.Serve(ctx, l) }()

	c := must(host.Connect(ctx, l.Addr().String(), disk, &host.Options{Network: "pipe"}))
	n := must(c.Namespaces(ctx))[0]
	fmt.Println(n.Size())
	check(t.Resize(disk, 1, large)) // its contents are those of another medium here
	check(small.Close())
	fmt.Println((<-c.Events()).Kind)
	fmt.Println(n.Size())

	check(c.Close())
	check(l.Close())
	check(t.Close())
	check(large.Close())
	// Output:
	// 1048576
	// namespaces
	// 4194304
}
