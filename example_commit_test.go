package iwarp_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// A record is pushed into a log on the peer's disk, and the pointer to the end of the log
// is moved only when the record is there.
func ExampleQP_CommitThen() {
	ctx := context.Background()
	dir := must(os.MkdirTemp("", "log"))
	defer os.RemoveAll(dir) //nolint:errcheck // it is temporary
	rnic := must(iwarp.Open(nil))
	defer rnic.Close() //nolint:errcheck // it only aborts
	pd := must(rnic.AllocPD())

	// The target registers a file. From then on its program has nothing to do.
	file := must(commit.OpenFile(filepath.Join(dir, "log"), &commit.FileOptions{Size: 1 << 20}))
	log := must(pd.RegisterBuffer(file, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: file}))
	enabled := &iwarp.CommitOptions{Negotiate: true}
	listener := must(rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil))
	go func() {
		request := must(listener.Accept(ctx))
		must(request.Accept(ctx, &iwarp.QPConfig{PD: pd, Commit: enabled}))
	}()

	qp := must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd, Commit: enabled}))
	record := []byte("a record")
	at := log.Advertise(4096, len(record))
	must(qp.Remote(at).WriteAt(record, 0))
	tail := iwarp.FollowOn{At: log.Advertise(0, 8)}
	binary.BigEndian.PutUint64(tail.Value[:], uint64(4096+len(record)))
	check(qp.CommitThen(ctx, tail, at))

	head := make([]byte, 8)
	must(file.ReadAt(head, 0))
	fmt.Println("the log ends at", binary.LittleEndian.Uint64(head))
	// Output: the log ends at 4104
}
