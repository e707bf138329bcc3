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

// durable connects two QPs with Commit. The server has registered a file of 1 MiB; from
// then on its program has nothing to do.
func durable() (client *iwarp.QP, file *commit.File, log *iwarp.MR, done func()) {
	dir := must(os.MkdirTemp("", "log"))
	file = must(commit.OpenFile(filepath.Join(dir, "log"), &commit.FileOptions{Size: 1 << 20}))
	rnic := must(iwarp.Open(nil))
	pd := must(rnic.AllocPD())
	log = must(pd.RegisterBuffer(file, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: file}))
	enabled := &iwarp.CommitOptions{Negotiate: true}
	client, _ = joined(rnic, pd, iwarp.QPConfig{Commit: enabled}, iwarp.QPConfig{Commit: enabled})
	return client, file, log, func() {
		check(rnic.Close())
		check(log.Close())
		check(file.Close())
		check(os.RemoveAll(dir))
	}
}

// Octets are written to a file of the peer, and then to its disk.
func ExampleQP_Commit() {
	ctx := context.Background()
	qp, file, log, done := durable()
	defer done()
	at := log.Advertise(0, 8)
	must(qp.Remote(at).WriteAt([]byte("a record"), 0))
	check(qp.Commit(ctx, at))
	fmt.Println("syncs of the peer's disk:", file.Syncs())
	// Output: syncs of the peer's disk: 1
}

// All of a file, however large, is made durable in as many requests as it takes.
func ExampleQP_CommitRange() {
	ctx := context.Background()
	qp, file, log, done := durable()
	defer done()
	all := log.Advertise(0, 1<<20)
	must(qp.Remote(all).WriteAt([]byte("first"), 0))
	must(qp.Remote(all).WriteAt([]byte("last"), 1<<20-4))
	check(qp.CommitRange(ctx, all.STag, all.TO, 1<<20))
	fmt.Println("syncs of the peer's disk:", file.Syncs())
	// Output: syncs of the peer's disk: 1
}

// A record is pushed into a log on the peer's disk, and the pointer to the end of the log
// is moved only when the record is there.
func ExampleQP_CommitThen() {
	ctx := context.Background()
	qp, file, log, done := durable()
	defer done()
	record := []byte("a record")
	at := log.Advertise(4096, len(record))
	must(qp.Remote(at).WriteAt(record, 0))
	tail := iwarp.FollowOn{At: log.Advertise(0, 8)}
	binary.BigEndian.PutUint64(tail.Value[:], uint64(4096+len(record)))
	check(qp.CommitThen(ctx, tail, at))

	head := make([]byte, 8)
	must(file.ReadAt(head, 0))
	fmt.Println("the log ends at", binary.NativeEndian.Uint64(head))
	// Output: the log ends at 4104
}

// A Write and its Commit are sent in one batch, and one completion reports both.
func ExampleQP_PostSend_commit() {
	qp, _, log, done := durable()
	defer done()
	at := log.Advertise(0, 8)
	check(qp.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Inline: []byte("a record"), Remote: at},
		iwarp.SendWR{ID: 7, Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{at}},
	))
	wcs := make([]iwarp.WC, 1)
	must(qp.SendCQ().Wait(context.Background(), wcs))
	fmt.Println(wcs[0].ID, wcs[0].Op, wcs[0].Status)
	// Output: 7 Commit success
}
