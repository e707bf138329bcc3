package backend_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
)

// A file is the medium of a namespace.
func Example() {
	dir, err := os.MkdirTemp("", "namespace")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	b, err := backend.Open("file:" + filepath.Join(dir, "disk.img") + ",size=1MiB,bs=512")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	fmt.Println(b.Size()/int64(b.BlockSize()), "blocks; volatile:", b.Volatile())

	ctx := context.Background()
	block := make([]byte, 512)
	copy(block, "hello")
	if err := b.WriteAt(ctx, block, 512, false); err != nil {
		log.Fatal(err)
	}
	if err := b.Flush(ctx); err != nil { // what was written is durable
		log.Fatal(err)
	}
	if err := b.ReadAt(ctx, block, 512); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", block[:5])

	err = b.WriteAt(ctx, block, b.Size(), false)
	fmt.Println(errors.Is(err, backend.ErrOutOfRange), err)
	// Output:
	// 2048 blocks; volatile: true
	// hello
	// true backend: write of 512 octets at 1048576: out of range
}

// A power cut keeps what was flushed. The seed chooses what it keeps of the rest.
func ExampleFake_Crash() {
	ctx := context.Background()
	f, err := backend.NewFake(backend.FakeConfig{Size: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	block := make([]byte, f.BlockSize())
	copy(block, "flushed")
	_ = f.WriteAt(ctx, block, 0, false)
	_ = f.Flush(ctx)
	_ = f.WriteAt(ctx, block, 4096, false)

	f, err = f.Crash(1, false)
	if err != nil {
		log.Fatal(err)
	}
	_ = f.ReadAt(ctx, block, 0)
	fmt.Printf("%s\n", block[:7])
	// Output: flushed
}
