package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// Two Writes, and the Read that confirms that they have been placed, are sent in one batch, and one
// call waits for all of them.
func ExampleQP_Do() {
	client, _, pd, done := pair()
	defer done()
	memory := make([]byte, 16)
	theirs := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)).Advertise(0, 16)
	ours := must(pd.RegisterMR([]byte("first second"), 0, nil))

	wcs := must(client.Do(context.Background(),
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{ours.Slice(0, 5)}, Remote: theirs},
		iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{ours.Slice(6, 6)}, Remote: theirs.Slice(8, 8)},
		iwarp.SendWR{Op: iwarp.OpRDMARead}, // of nothing: its answer is after the Writes
	))
	fmt.Printf("%d done; %q\n", len(wcs), memory)
	// Output: 3 done; "first\x00\x00\x00second\x00\x00"
}

// The error of a list says which work request was the first that did not succeed.
func ExampleListError() {
	client, _, pd, done := pair()
	defer done()
	ours := must(pd.RegisterMR(make([]byte, 8), 0, nil))

	wcs, err := client.Do(context.Background(),
		iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{ours.Slice(0, 8)}},
		iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{ours.Slice(4, 8)}})
	var list *iwarp.ListError
	if errors.As(err, &list) {
		fmt.Println(len(wcs), "done; wrong:", list.N, errors.Is(err, iwarp.ErrBounds))
	}
	// Output: 1 done; wrong: 1 true
}

// A window is bound, used, and invalidated by the peer's message.
func ExampleQP_SendInvalidate() {
	ctx := context.Background()
	client, server, pd, done := pair()
	defer done()
	memory := make([]byte, 64)
	region := must(pd.RegisterMR(memory, stag.LocalWrite|stag.MWBind, nil))
	window := must(pd.AllocMW())
	check(server.Bind(ctx, window, region.Slice(0, 32), stag.RemoteWrite))
	lent := window.Advertise(0, 32)

	answer := make(chan iwarp.WC)
	go func() { answer <- must(server.RecvWC(ctx, region.Slice(32, 32))) }()
	text := must(pd.RegisterMR([]byte("data done"), 0, nil))
	check(client.RDMAWrite(ctx, lent, text.Slice(0, 4)))
	check(client.SendInvalidate(ctx, lent.STag, text.Slice(5, 4)))

	message := <-answer
	fmt.Printf("%s, %s; given back: %v\n", memory[:4], memory[32:36], message.STag == lent.STag)
	// Output: data, done; given back: true
}

// A bound window is revoked after all work that was posted before.
func ExampleQP_LocalInvalidate() {
	ctx := context.Background()
	client, server, pd, done := pair()
	defer done()
	region := must(pd.RegisterMR([]byte("for a while"), stag.LocalWrite|stag.RemoteRead|stag.MWBind, nil))
	window := must(pd.AllocMW())
	check(server.Bind(ctx, window, region.Slice(0, 11), stag.RemoteRead))
	lent := client.Remote(window.Advertise(0, 11))

	p := make([]byte, 11)
	must(lent.ReadAt(p, 0))
	check(server.LocalInvalidate(ctx, window.STag()))
	_, err := lent.ReadAt(p, 0)
	fmt.Printf("%s: %v\n", p, errors.Is(err, iwarp.ErrInvalidSTag))
	// Output: for a while: true
}

// A window gives one peer access to a part of a region, under its own STag.
func ExampleQP_Bind() {
	ctx := context.Background()
	client, server, pd, done := pair()
	defer done()
	region := must(pd.RegisterMR([]byte("mine yours mine"), stag.LocalWrite|stag.MWBind, nil))
	window := must(pd.AllocMW())
	check(server.Bind(ctx, window, region.Slice(5, 5), stag.RemoteRead))

	p := make([]byte, 5)
	must(client.Remote(window.Advertise(0, 5)).ReadAt(p, 0))
	fmt.Printf("%s\n", p)
	// Output: yours
}

// Memory is registered, advertised and invalidated without waiting for the peer.
func ExampleQP_Register() {
	ctx := context.Background()
	client, server, pd, done := pair()
	defer done()
	region := must(pd.AllocMR(1<<20, stag.LocalWrite|stag.RemoteRead, &iwarp.MROptions{QP: server}))
	for _, text := range []string{"one", "two"} {
		check(server.Register(ctx, region, []byte(text), stag.RemoteRead))
		p := make([]byte, 3)
		must(client.Remote(region.Advertise(0, 3)).ReadAt(p, 0))
		fmt.Printf("%s\n", p)
		check(server.LocalInvalidate(ctx, region.STag()))
	}
	// Output:
	// one
	// two
}

// Eight octets tell the peer something without any of its memory.
func ExampleQP_SendImmediate() {
	ctx := context.Background()
	client, server, _, done := pair()
	defer done()
	message := make(chan iwarp.WC)
	go func() { message <- must(server.RecvWC(ctx)) }()
	check(client.SendImmediate(ctx, [8]byte{0, 0, 0, 7}))
	wc := <-message
	fmt.Println(wc.Op, wc.Imm)
	// Output: Receive of an Immediate [0 0 0 7 0 0 0 0]
}

// The Immediate Data after a Write tells the peer that the Write has been placed, and which one it is.
func ExampleQP_RDMAWriteImm() {
	ctx := context.Background()
	client, server, pd, done := pair()
	defer done()
	memory := make([]byte, 8)
	theirs := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite, nil)).Advertise(0, 8)
	ours := must(pd.RegisterMR([]byte("a block"), 0, nil))

	message := make(chan iwarp.WC)
	go func() { message <- must(server.RecvWC(ctx)) }()
	check(client.RDMAWriteImm(ctx, theirs, [8]byte{42}, ours.Slice(0, 7)))
	fmt.Println((<-message).Imm[0], string(memory[:7]))
	// Output: 42 a block
}

// The whole completion of a receive, if the length of the message is not sufficient.
func ExampleQP_RecvWC() {
	ctx := context.Background()
	client, server, pd, done := pair()
	defer done()
	inbox := make([]byte, 16)
	mr := must(pd.RegisterMR(inbox, stag.LocalWrite, nil))
	check(client.PostSend(
		iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Solicited, Inline: []byte("now")},
		iwarp.SendWR{Op: iwarp.OpImmediate, Imm: [8]byte{1}}))
	for range 2 {
		wc := must(server.RecvWC(ctx, mr.Slice(0, 16)))
		fmt.Printf("%v: %q, solicited %t, %v\n", wc.Op, inbox[:wc.Len], wc.Flags&iwarp.Solicited != 0, wc.Imm)
	}
	// Output:
	// Receive: "now", solicited true, [0 0 0 0 0 0 0 0]
	// Receive of an Immediate: "", solicited false, [1 0 0 0 0 0 0 0]
}

// The peer can no longer change what a client has read, because the sink is invalid when the
// Read is done.
func ExampleQP_RDMAReadInvalidate() {
	ctx := context.Background()
	client, _, pd, done := pair()
	defer done()
	theirs := must(pd.RegisterMR([]byte("far away"), stag.RemoteRead, nil)).Advertise(0, 8)
	memory := make([]byte, 8)
	sink := must(pd.RegisterMR(memory, stag.LocalWrite, &iwarp.MROptions{QP: client}))
	check(client.RDMAReadInvalidate(ctx, sink.Slice(0, 8), theirs))
	fmt.Printf("%s\n", memory)
	fmt.Println(errors.Is(client.RDMARead(ctx, sink.Slice(0, 8), theirs), iwarp.ErrInvalidSTag))
	// Output:
	// far away
	// true
}

// The client that swaps first gets the value.
func ExampleQP_Swap() {
	ctx := context.Background()
	client, _, pd, done := pair()
	defer done()
	memory, integers := integersOf(1)
	integers[0] = 100
	at := must(pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteAtomic, nil)).Advertise(0, 8)
	fmt.Println(client.Swap(ctx, at, 0))
	fmt.Println(client.Swap(ctx, at, 0))
	// Output:
	// 100 <nil>
	// 0 <nil>
}

// A file instead of memory. Package commit provides files that can be made durable.
func ExampleNewFileBuffer() {
	_, peer, pd, done := pair()
	defer done()
	file := must(os.CreateTemp("", "iwarp"))
	defer os.Remove(file.Name())
	defer file.Close()
	must(file.WriteString("octets of a file"))

	octets := must(iwarp.NewFileBuffer(file, 0))
	region := must(pd.RegisterBuffer(octets, stag.RemoteRead, nil))
	p := make([]byte, octets.Size())
	must(peer.Remote(region.Advertise(0, len(p))).ReadAt(p, 0))
	fmt.Printf("%s\n", p)
	// Output: octets of a file
}
