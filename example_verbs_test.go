package iwarp_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// integersOf returns memory for n 64-bit integers for atomic operations, as octets and as
// integers.
func integersOf(n int) (memory []byte, integers []uint64) {
	integers = make([]uint64, n)
	return unsafe.Slice((*byte)(unsafe.Pointer(&integers[0])), 8*n), integers
}

// One message, for which a receive was posted.
func ExampleQP_Send() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()

	inbox := make([]byte, 64)
	lent := must(pd.RegisterMR(inbox, stag.LocalWrite, nil))
	check(server.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{lent.Slice(0, 64)}}))

	text := must(pd.RegisterMR([]byte("hello"), 0, nil))
	check(client.Send(ctx, text.Slice(0, 5)))

	var wcs [1]iwarp.WC
	must(server.RecvCQ().Wait(ctx, wcs[:]))
	check(wcs[0].Err())
	fmt.Printf("%v %d: %s\n", wcs[0].Op, wcs[0].ID, inbox[:wcs[0].Len])
	// Output: Receive 1: hello
}

// Data is written to the peer's memory; the RDMA Read after it confirms that it is there.
func ExampleQP_RDMAWrite() {
	client, _, pd, done := pair()
	defer done()
	ctx := context.Background()

	memory := make([]byte, 16)
	theirs := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)).Advertise(0, 16)
	ours := must(pd.RegisterMR([]byte("written"), stag.LocalWrite, nil))

	check(client.RDMAWrite(ctx, theirs, ours.Slice(0, 7)))
	check(client.RDMARead(ctx, ours.Slice(0, 1), theirs))
	fmt.Printf("%s\n", memory[:7])
	// Output: written
}

// Data is read from the peer's memory, without involving the peer's program.
func ExampleQP_RDMARead() {
	client, _, pd, done := pair()
	defer done()

	theirs := must(pd.RegisterMR([]byte("far away"), stag.RemoteRead, nil)).Advertise(4, 4)
	memory := make([]byte, 4)
	ours := must(pd.RegisterMR(memory, stag.LocalWrite, nil))

	check(client.RDMARead(context.Background(), ours.Slice(0, 4), theirs))
	fmt.Printf("%s\n", memory)
	// Output: away
}

// A counter that peers and code of this process add to: code uses sync/atomic.
func ExampleQP_FetchAdd() {
	client, _, pd, done := pair()
	defer done()
	ctx := context.Background()

	memory, integers := integersOf(1)
	tickets := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteAtomic, nil)).Advertise(0, 8)

	fmt.Println(client.FetchAdd(ctx, tickets, 1))
	fmt.Println(client.FetchAdd(ctx, tickets, 1))
	atomic.AddUint64(&integers[0], 40)
	fmt.Println(client.FetchAdd(ctx, tickets, 0)) // adding nothing reads
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 42 <nil>
}

// A lock: the client that finds it free holds it.
func ExampleQP_CompareSwap() {
	client, _, pd, done := pair()
	defer done()
	ctx := context.Background()

	const free, alice, bob = 0, 1, 2
	memory, _ := integersOf(1)
	lock := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteAtomic, nil)).Advertise(0, 8)

	fmt.Println("alice finds", must(client.CompareSwap(ctx, lock, free, alice)))
	fmt.Println("bob finds", must(client.CompareSwap(ctx, lock, free, bob)))
	fmt.Println("alice leaves", must(client.CompareSwap(ctx, lock, alice, free)))
	fmt.Println("bob finds", must(client.CompareSwap(ctx, lock, free, bob)))
	// Output:
	// alice finds 0
	// bob finds 1
	// alice leaves 1
	// bob finds 0
}

// Numbers are drawn in one post: several atomic operations may be outstanding, up to the ORD.
func ExampleQP_PostSend_fetchAdd() {
	client, _, pd, done := pair()
	defer done()

	memory, integers := integersOf(2)
	region := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteAtomic, nil))
	check(client.PostSend(
		iwarp.SendWR{ID: 1, Op: iwarp.OpFetchAdd, Remote: region.Advertise(0, 8), Add: 100},
		iwarp.SendWR{ID: 2, Op: iwarp.OpFetchAdd, Remote: region.Advertise(0, 8), Add: 1},
		iwarp.SendWR{ID: 3, Op: iwarp.OpFetchAdd, Remote: region.Advertise(8, 8), Add: ^uint64(0)})) // subtracts 1
	for wc, err := range client.SendCQ().All(context.Background()) {
		check(err)
		check(wc.Err())
		fmt.Println(wc.ID, "got", wc.Old)
		if wc.ID == 3 {
			break
		}
	}
	fmt.Println(integers[0], int64(integers[1]))
	// Output:
	// 1 got 0
	// 2 got 100
	// 3 got 0
	// 101 -1
}

// A version is raised if it has not changed since it was read: the second attempt is late.
func ExampleQP_PostSend_compareSwap() {
	client, _, pd, done := pair()
	defer done()

	memory, integers := integersOf(1)
	integers[0] = 5
	version := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteAtomic, nil)).Advertise(0, 8)
	for _, mine := range []uint64{5, 5} {
		check(client.PostSend(iwarp.SendWR{Op: iwarp.OpCompareSwap, Remote: version, Compare: mine, Swap: mine + 1}))
		var wcs [1]iwarp.WC
		must(client.SendCQ().Wait(context.Background(), wcs[:]))
		check(wcs[0].Err())
		fmt.Printf("%v: it was %d, mine: %v\n", wcs[0].Op, wcs[0].Old, wcs[0].Old == mine)
	}
	// Output:
	// Compare and Swap: it was 5, mine: true
	// Compare and Swap: it was 6, mine: false
}

// A Swap replaces a value, whatever it was, and returns the old value.
func ExampleQP_PostSend_swap() {
	client, _, pd, done := pair()
	defer done()

	memory, integers := integersOf(1)
	integers[0] = 0xcafe // a job that another client has stored
	mailbox := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteAtomic, nil)).Advertise(0, 8)
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSwap, Remote: mailbox, Swap: 0}))

	var wcs [1]iwarp.WC
	must(client.SendCQ().Wait(context.Background(), wcs[:]))
	check(wcs[0].Err())
	fmt.Printf("%v: took %#x, left %d\n", wcs[0].Op, wcs[0].Old, integers[0])
	// Output: Swap: took 0xcafe, left 0
}

// Masks divide one integer into several fields: here two counters of 32 bits, and a flag.
func ExampleQP_PostSend_masks() {
	client, _, pd, done := pair()
	defer done()

	memory, integers := integersOf(1)
	at := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteAtomic, nil)).Advertise(0, 8)
	integers[0] = 0x00000007_ffffffff

	check(client.PostSend(
		// The lower counter wraps around and does not touch the upper one.
		iwarp.SendWR{ID: 1, Op: iwarp.OpFetchAdd, Remote: at, Add: 1<<32 | 2, AddMask: 1<<63 | 1<<31},
		// If the lowest bit is set, the upper half is replaced.
		iwarp.SendWR{ID: 2, Op: iwarp.OpCompareSwap, Remote: at, Compare: 1, CompareMask: 1, Swap: 0xaa << 32, SwapMask: 0xffffffff << 32},
		// All of it is replaced, whatever it was.
		iwarp.SendWR{ID: 3, Op: iwarp.OpSwap, Remote: at, Swap: 5},
	))
	for wc, err := range client.SendCQ().All(context.Background()) {
		check(err)
		fmt.Printf("%v: it was %#016x\n", wc.Op, wc.Old)
		if wc.ID == 3 {
			break
		}
	}
	fmt.Println("it is", integers[0])
	// Output:
	// Fetch and Add: it was 0x00000007ffffffff
	// Compare and Swap: it was 0x0000000800000001
	// Swap: it was 0x000000aa00000001
	// it is 5
}

// Data is written to the peer's memory, and eight octets tell its program that it is there.
func ExampleQP_PostSend_writeWithImmediate() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()

	memory := make([]byte, 16)
	theirs := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite, nil)).Advertise(0, 16)
	check(server.PostRecv(iwarp.RecvWR{ID: 1})) // it takes no memory

	wr := iwarp.SendWR{Op: iwarp.OpRDMAWriteImm, Inline: []byte("block 7"), Remote: theirs}
	binary.BigEndian.PutUint32(wr.Imm[:], 7)
	check(client.PostSend(wr))

	var wcs [1]iwarp.WC
	must(server.RecvCQ().Wait(ctx, wcs[:]))
	check(wcs[0].Err())
	fmt.Printf("%v, number %d: %s\n", wcs[0].Op, binary.BigEndian.Uint32(wcs[0].Imm[:]), memory[:7])
	// Output: Receive of an Immediate, number 7: block 7
}

// Immediate Data alone is the smallest message.
func ExampleQP_PostSend_immediate() {
	client, server, _, done := pair()
	defer done()

	check(server.PostRecv(iwarp.RecvWR{ID: 1}, iwarp.RecvWR{ID: 2}))
	check(client.PostSend(
		iwarp.SendWR{Op: iwarp.OpImmediate, Imm: [8]byte{'p', 'i', 'n', 'g'}},
		iwarp.SendWR{Op: iwarp.OpImmediate, Imm: [8]byte{'p', 'o', 'n', 'g'}, Flags: iwarp.Solicited},
	))
	for wc, err := range server.RecvCQ().All(context.Background()) {
		check(err)
		fmt.Printf("%d: %s, solicited: %v\n", wc.ID, wc.Imm[:4], wc.Flags&iwarp.Solicited != 0)
		if wc.ID == 2 {
			break
		}
	}
	// Output:
	// 1: ping, solicited: false
	// 2: pong, solicited: true
}
