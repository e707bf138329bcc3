package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// A program connects to a subsystem, and uses its first namespace as a disk. It needs a target, such as
// that of the Linux kernel on iWARP.
func ExampleConnect() {
	ctx := context.Background()
	c, err := host.Connect(ctx, "10.1.0.1:4420", "nqn.2026-11.org.example:disk", &host.Options{Queues: 4})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	disks, err := c.Namespaces(ctx)
	if err != nil {
		log.Fatal(err)
	}
	disk := disks[0]
	block := make([]byte, disk.BlockSize())
	copy(block, "something to keep")
	if _, err := disk.WriteAt(block, 0); err != nil {
		log.Fatal(err)
	}
	if err := disk.Flush(ctx); err != nil { // now it is durable
		log.Fatal(err)
	}
	if _, err := disk.ReadAt(block, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", block[:17])
}

// A program lists what a target offers.
func ExampleDiscover() {
	entries, err := host.Discover(context.Background(), "10.1.0.1:4420", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.SubNQN, e.TRADDR, e.TRSVCID)
	}
}
