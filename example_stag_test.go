package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A memory window gives access to a part of a region for a while. Its owner binds it and
// advertises it to the peer. The peer writes, and invalidates the window with the message that
// reports the write.
func ExamplePD_AllocMW() {
	ctx := context.Background()
	owner, peer, pd, done := pair()
	defer done()

	memory := make([]byte, 4096)
	region := must(pd.RegisterMR(memory, stag.LocalWrite|stag.MWBind, nil)) // no peer may access it
	window := must(pd.AllocMW())
	check(owner.PostRecv(iwarp.RecvWR{}))
	check(owner.PostSend(iwarp.SendWR{
		Op: iwarp.OpBind, MW: window, Local: []iwarp.SGE{region.Slice(1024, 16)}, Access: stag.RemoteWrite,
	}))
	where := must(window.Advertise(0, 16).AppendBinary(nil)) // its new name, in force before the Send
	check(owner.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: where}))

	// The peer: what it learns, it uses, and then gives back.
	inbox := make([]byte, 16)
	message := must(pd.RegisterMR(inbox, stag.LocalWrite, nil))
	must(peer.Recv(ctx, message.Slice(0, 16)))
	var lent iwarp.RemoteBuffer
	check(lent.UnmarshalBinary(inbox))
	check(peer.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("lent, then given"), Remote: lent},
		iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: lent.STag}))

	// The owner: when the message is here, so is the data, and the window is dead.
	var wcs [1]iwarp.WC
	must(owner.RecvCQ().Wait(ctx, wcs[:]))
	if wcs[0].STag != window.STag() {
		check(window.Invalidate(ctx)) // the peer has not kept its word
	}
	fmt.Printf("%s\n", memory[1024:1040])
	// Output: lent, then given
}

// Fast registration, as a storage protocol uses it for each command: memory gets an
// STag, an RDMA Read fills it, and the Read invalidates the STag; all in one post.
func ExamplePD_AllocMR() {
	ctx := context.Background()
	owner, _, pd, done := pair()
	defer done()
	disk := must(pd.RegisterMR([]byte("block 0|block 1|block 2|"), stag.RemoteRead, nil))

	region := must(pd.AllocMR(1<<20, stag.LocalWrite, nil)) // once; used again for each command
	for i := range 3 {
		block := make([]byte, 7)
		check(owner.PostSend(
			iwarp.SendWR{Op: iwarp.OpRegister, Flags: iwarp.Unsignaled, MR: region, Memory: block, Access: stag.LocalWrite},
			iwarp.SendWR{Op: iwarp.OpRDMAReadInvalidate, Local: []iwarp.SGE{region.Slice(0, 7)}, Remote: disk.Advertise(8*i, 7)}))
		var wcs [1]iwarp.WC
		must(owner.SendCQ().Wait(ctx, wcs[:]))
		fmt.Printf("%s: %v\n", block, wcs[0].Status)
	}
	// Output:
	// block 0: success
	// block 1: success
	// block 2: success
}

// All access of a peer ends when Invalidate returns, without the peer's consent.
func ExampleMR_Invalidate() {
	ctx := context.Background()
	_, peer, pd, done := pair()
	defer done()
	memory := make([]byte, 8)
	region := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite, nil))
	lent := region.Advertise(0, 8)
	must(peer.Remote(lent).WriteAt([]byte("on time!"), 0))
	check(peer.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{})) // tells that the Write is placed

	check(region.Invalidate(ctx))
	must(peer.Remote(lent).WriteAt([]byte("too late"), 0))
	<-peer.Done()
	fmt.Printf("%s: %v\n", memory, peer.Err())
	// Output: on time!: iwarp: terminated by the peer: DDP tagged buffer: invalid STag (1/1/00)
}

// A window is revoked without the peer's help; then its region can be closed.
func ExampleMW_Invalidate() {
	ctx := context.Background()
	owner, _, pd, done := pair()
	defer done()
	region := must(pd.RegisterMR(make([]byte, 64), stag.MWBind, nil))
	window := must(pd.AllocMW())
	check(owner.PostSend(iwarp.SendWR{
		Op: iwarp.OpBind, MW: window, Local: []iwarp.SGE{region.Slice(0, 64)}, Access: stag.RemoteRead,
	}))
	var wcs [1]iwarp.WC
	must(owner.SendCQ().Wait(ctx, wcs[:]))
	fmt.Println(errors.Is(region.Close(), iwarp.ErrWindowBound))
	check(window.Invalidate(ctx))
	fmt.Println(region.Close())
	// Output:
	// true
	// <nil>
}

// What a window advertises to the peer. Each bind gives it a new STag.
func ExampleMW_Advertise() {
	ctx := context.Background()
	owner, peer, pd, done := pair()
	defer done()
	region := must(pd.RegisterMR([]byte("page 1page 2"), stag.MWBind, nil))
	window := must(pd.AllocMW())
	fmt.Println(window.Advertise(0, 6) == iwarp.RemoteBuffer{}) // it is not bound yet
	check(owner.PostSend(iwarp.SendWR{
		Op: iwarp.OpBind, MW: window, Local: []iwarp.SGE{region.Slice(6, 6)}, Access: stag.RemoteRead,
	}))
	check(owner.Drain(ctx))

	number := make([]byte, 1)
	must(peer.Remote(window.Advertise(5, 1)).ReadAt(number, 0)) // counted from the first octet of the window
	fmt.Printf("%s\n", number)
	// Output:
	// true
	// 2
}

// When Close returns, the memory is not in use any more, and no peer can access it.
func ExampleMR_Close() {
	owner, peer, pd, done := pair()
	defer done()
	memory := []byte("version 1")
	region := must(pd.RegisterMR(memory, stag.RemoteRead, nil))
	lent := region.Advertise(0, len(memory))
	check(region.Close())
	copy(memory, "version 2") // it is the caller's again

	fmt.Println(errors.Is(owner.Send(context.Background(), region.Slice(0, 9)), iwarp.ErrInvalidSTag))
	_, err := peer.Remote(lent).ReadAt(make([]byte, 9), 0)
	fmt.Println(errors.Is(err, iwarp.ErrInvalidSTag))
	// Output:
	// true
	// true
}

// A file instead of memory: an RDMA Write becomes a WriteAt.
func ExamplePD_RegisterBuffer() {
	ctx := context.Background()
	_, peer, pd, done := pair()
	defer done()
	file := must(os.CreateTemp("", "iwarp"))
	defer os.Remove(file.Name())
	defer file.Close()
	check(file.Truncate(1 << 20))
	octets := must(iwarp.NewFileBuffer(file, 0))
	region := must(pd.RegisterBuffer(octets, stag.LocalWrite|stag.RemoteWrite, nil))

	must(peer.Remote(region.Advertise(0, 1<<20)).WriteAt([]byte("into the file"), 4096))
	check(peer.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{})) // tells that the Write is placed
	written := make([]byte, 13)
	must(file.ReadAt(written, 4096))
	fmt.Printf("%s\n", written)
	// Output: into the file
}

// The usual pattern: a defer closes the region of a helper. If the helper was cancelled its
// work request continues; Close waits until the request no longer uses the octets, and the
// connection remains usable.
func ExampleMR_CloseContext() {
	client, _, pd, done := pair()
	defer done()
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	slow := must(pd.RegisterBuffer(&slowBuffer{released}, stag.RemoteRead, nil))
	fetch := func(ctx context.Context, p []byte) (err error) {
		region := must(pd.RegisterMR(p, stag.LocalWrite, nil))
		defer func() {
			soon, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if cerr := region.CloseContext(soon); cerr != nil {
				err = cerr // p is not ours yet
			}
		}()
		defer release() // so the first answer comes too late
		return client.RDMARead(ctx, region.Slice(0, len(p)), slow.Advertise(0, len(p)))
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(fetch(ctx, make([]byte, 4)))

	p := make([]byte, 4)
	fmt.Println(fetch(context.Background(), p), string(p))
	// Output:
	// iwarp: RDMA Read: context deadline exceeded
	// <nil> slow
}

// A slowBuffer answers when it is released.
type slowBuffer struct{ released chan struct{} }

func (b *slowBuffer) Size() int64                        { return 4 }
func (b *slowBuffer) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

func (b *slowBuffer) ReadAt(p []byte, off int64) (int, error) {
	<-b.released
	return copy(p, "slow"[off:]), nil
}

// A window is closed when the work requests that bind or invalidate it are done.
func ExampleMW_CloseContext() {
	client, _, pd, done := pair()
	defer done()
	region := must(pd.RegisterMR(make([]byte, 8), stag.LocalWrite|stag.MWBind, nil))
	window := must(pd.AllocMW())
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpBind, MW: window, Local: []iwarp.SGE{region.Slice(0, 8)}, Access: stag.RemoteRead}))
	fmt.Println(errors.Is(region.Close(), iwarp.ErrWindowBound))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check(window.CloseContext(ctx))
	fmt.Println(region.CloseContext(ctx))
	// Output:
	// true
	// <nil>
}
