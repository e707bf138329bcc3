package commit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp/commit"
)

// A file is written, and made durable; what has not changed since needs no sync.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "commit")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file, err := commit.OpenFile(filepath.Join(dir, "log"), &commit.FileOptions{Size: 1 << 20})
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("a record"), 4096); err != nil {
		panic(err)
	}
	for range 2 {
		if err := file.Flush(context.Background(), 4096, 8); err != nil {
			panic(err)
		}
	}
	fmt.Println("syncs:", file.Syncs())
	// Output: syncs: 1
}
