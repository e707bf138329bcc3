package iwarp_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// Two Sends: octets that are copied when they are posted, and octets gathered from a
// region. One completion is enough for both, since they complete in order.
func ExampleQP_PostSend() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()

	inbox := make([]byte, 64)
	lent := must(pd.RegisterMR(inbox, stag.LocalWrite, nil))
	check(server.PostRecv(
		iwarp.RecvWR{ID: 0, Local: []iwarp.SGE{lent.Slice(0, 32)}},
		iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{lent.Slice(32, 32)}}))

	words := must(pd.RegisterMR([]byte("memory far"), 0, nil))
	check(client.PostSend(
		iwarp.SendWR{ID: 1, Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: []byte("hello")},
		iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Local: []iwarp.SGE{words.Slice(7, 3), words.Slice(0, 6)}}))
	wcs := make([]iwarp.WC, 2)
	must(client.SendCQ().Wait(ctx, wcs))
	fmt.Println(wcs[0].Op, wcs[0].ID, wcs[0].Status)

	for range 2 {
		must(server.RecvCQ().Wait(ctx, wcs[:1]))
		at := 32 * wcs[0].ID
		fmt.Printf("%s\n", inbox[at:at+uint64(wcs[0].Len)])
	}
	// Output:
	// Send 2 success
	// hello
	// farmemory
}

// A region is advertised for one answer. The server writes the answer, and invalidates the STag
// with the message that announces the answer.
func ExampleQP_PostSend_sendInvalidate() {
	client, server, pd, done := pair()
	defer done()

	memory := make([]byte, 16)
	lent := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{QP: client}))
	where := lent.Advertise(0, 16) // the client would tell this with its question
	check(client.PostRecv(iwarp.RecvWR{}))

	check(server.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("42"), Remote: where},
		iwarp.SendWR{Op: iwarp.OpSendInvalidate, Invalidate: where.STag}))

	var wcs [1]iwarp.WC
	must(client.RecvCQ().Wait(context.Background(), wcs[:]))
	check(wcs[0].Err())
	fmt.Printf("%s, revoked: %v\n", memory[:2], wcs[0].STag == lent.STag())
	// Output: 42, revoked: true
}

// Solicited marks the message for which the peer's program should wake up; see
// [iwarp.CQ.WaitSolicited].
func ExampleQP_PostSend_solicited() {
	client, server, _, done := pair()
	defer done()

	check(server.PostRecv(iwarp.RecvWR{ID: 1}, iwarp.RecvWR{ID: 2}))
	check(client.PostSend(
		iwarp.SendWR{Op: iwarp.OpSend},
		iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Solicited}))

	var wcs [2]iwarp.WC
	n := must(server.RecvCQ().WaitSolicited(context.Background(), wcs[:]))
	for _, wc := range wcs[:n] {
		fmt.Printf("%d: solicited: %v\n", wc.ID, wc.Flags&iwarp.Solicited != 0)
	}
	// Output:
	// 1: solicited: false
	// 2: solicited: true
}

// RDMA Writes complete when they have been handed to the network. A later RDMA Read, here
// of no octets, completes when they are in place.
func ExampleQP_PostSend_rdmaWrite() {
	client, _, pd, done := pair()
	defer done()

	memory := make([]byte, 16)
	theirs := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite, nil))
	ours := must(pd.RegisterMR([]byte("far memory"), 0, nil))

	check(client.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Inline: []byte("hello,"), Remote: theirs.Advertise(0, 6)},
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{ours.Slice(3, 7)}, Remote: theirs.Advertise(6, 7)},
		iwarp.SendWR{Op: iwarp.OpRDMARead}))

	var wcs [1]iwarp.WC
	must(client.SendCQ().Wait(context.Background(), wcs[:]))
	check(wcs[0].Err())
	fmt.Printf("%s\n", memory[:13])
	// Output: hello, memory
}

// An RDMA Read, and a Send that tells the peer that its memory has been read. ReadFence
// holds the Send back until the octets are here.
func ExampleQP_PostSend_rdmaRead() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()

	theirs := must(pd.RegisterMR([]byte("far away"), stag.RemoteRead, nil))
	memory := make([]byte, 8)
	ours := must(pd.RegisterMR(memory, stag.LocalWrite, nil))
	check(server.PostRecv(iwarp.RecvWR{ID: 7}))

	check(client.PostSend(
		iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{ours.Slice(0, 4)}, Remote: theirs.Advertise(4, 4)},
		iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Flags: iwarp.ReadFence}))

	var wcs [1]iwarp.WC
	must(client.SendCQ().Wait(ctx, wcs[:]))
	fmt.Printf("%v of %d octets: %s\n", wcs[0].Op, wcs[0].Len, memory[:4])
	must(server.RecvCQ().Wait(ctx, wcs[:]))
	fmt.Println(wcs[0].Op, wcs[0].ID)
	// Output:
	// RDMA Read of 4 octets: away
	// Receive 7
}

// The sink of the Read is invalidated as the Read completes: the STag that the peer knows is
// then useless.
func ExampleQP_PostSend_rdmaReadInvalidate() {
	client, _, pd, done := pair()
	defer done()

	theirs := must(pd.RegisterMR([]byte("far away"), stag.RemoteRead, nil))
	memory := make([]byte, 8)
	sink := must(pd.RegisterMR(memory, stag.LocalWrite, nil))
	read := iwarp.SendWR{
		Op: iwarp.OpRDMAReadInvalidate, Local: []iwarp.SGE{sink.Slice(0, 8)}, Remote: theirs.Advertise(0, 8),
	}
	check(client.PostSend(read))

	var wcs [1]iwarp.WC
	must(client.SendCQ().Wait(context.Background(), wcs[:]))
	fmt.Printf("%v: %s\n", wcs[0].Op, memory)
	fmt.Println(errors.Is(client.PostSend(read), iwarp.ErrInvalidSTag)) // the sink is gone
	// Output:
	// RDMA Read with local Invalidate: far away
	// true
}

// A region is invalidated in order: with LocalFence the invalidation waits for the Read that
// fills the region.
func ExampleQP_PostSend_localInvalidate() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()

	memory := make([]byte, 8)
	region := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite, nil))
	theirs := must(pd.RegisterMR([]byte("far away"), stag.RemoteRead, nil))
	check(client.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{region.Slice(0, 8)}, Remote: theirs.Advertise(0, 8)},
		iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Flags: iwarp.LocalFence, MR: region}))
	check(client.Drain(ctx))

	must(server.Remote(region.Advertise(0, 8)).WriteAt([]byte("too late"), 0))
	<-server.Done()
	fmt.Printf("%s: %v\n", memory, server.Terminated())
	// Output: far away: iwarp: terminated by the peer: DDP tagged buffer: invalid STag (1/1/00)
}

// Fast registration: memory gets an STag, and the next message tells the peer which one, all
// in one post.
func ExampleQP_PostSend_register() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()
	inbox := make([]byte, 16)
	check(server.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{must(pd.RegisterMR(inbox, stag.LocalWrite, nil)).Slice(0, 16)}}))

	const most = 1 << 20 // octets that a registration may have
	region := must(pd.AllocMR(most, stag.RemoteRead, nil))
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpRegister, MR: region, Memory: []byte("page 1, page 2"), Access: stag.RemoteRead}))
	where := must(region.Advertise(8, 6).AppendBinary(nil)) // as the registration that was posted last has it
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: where}))

	var wcs [1]iwarp.WC
	must(server.RecvCQ().Wait(ctx, wcs[:]))
	var lent iwarp.RemoteBuffer
	check(lent.UnmarshalBinary(inbox))
	page := make([]byte, 6)
	must(server.Remote(lent).ReadAt(page, 0))
	fmt.Printf("%s\n", page)
	// Output: page 2
}

// The same in one post: the message contains the STag before the registration is posted.
func ExampleMR_NextKey() {
	client, server, pd, done := pair()
	defer done()
	inbox := make([]byte, 16)
	check(server.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{must(pd.RegisterMR(inbox, stag.LocalWrite, nil)).Slice(0, 16)}}))

	region := must(pd.AllocMR(1<<20, stag.RemoteRead, nil))
	key := must(region.NextKey())
	where := must(iwarp.RemoteBuffer{STag: region.STag()&^0xff | stag.STag(key), TO: 0, Len: 6}.AppendBinary(nil))
	check(client.PostSend(
		iwarp.SendWR{Op: iwarp.OpRegister, MR: region, Memory: []byte("page 1"), Access: stag.RemoteRead, Key: &key},
		iwarp.SendWR{Op: iwarp.OpSend, Inline: where},
	))

	var wcs [1]iwarp.WC
	must(server.RecvCQ().Wait(context.Background(), wcs[:]))
	var lent iwarp.RemoteBuffer
	check(lent.UnmarshalBinary(inbox))
	page := make([]byte, 6)
	must(server.Remote(lent).ReadAt(page, 0))
	fmt.Printf("%s\n", page)
	// Output: page 1
}

// One window covers one part of a region after the other, under a new STag each time.
func ExampleQP_PostSend_bind() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()

	region := must(pd.RegisterMR([]byte("page 1page 2"), stag.MWBind, nil)) // no peer can reach it as such
	window := must(pd.AllocMW())
	for i := range 2 {
		check(client.PostSend(iwarp.SendWR{
			Op: iwarp.OpBind, MW: window, Local: []iwarp.SGE{region.Slice(6*i, 6)}, Access: stag.RemoteRead,
		}))
		check(client.Drain(ctx)) // a Send posted after the bind would do as well
		page := make([]byte, 6)
		must(server.Remote(window.Advertise(0, 6)).ReadAt(page, 0))
		fmt.Printf("%s\n", page)
		check(client.PostSend(iwarp.SendWR{Op: iwarp.OpLocalInvalidate, MW: window}))
	}
	// Output:
	// page 1
	// page 2
}
