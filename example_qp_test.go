package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// What Setup posts is sent as soon as the connection is established.
func ExampleQP_PostSend_early() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	client, server := joined(rnic, pd,
		iwarp.QPConfig{Setup: func(_ context.Context, qp *iwarp.QP) error {
			return qp.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpSend})
		}},
		iwarp.QPConfig{Setup: func(_ context.Context, qp *iwarp.QP) error {
			return qp.PostRecv(iwarp.RecvWR{ID: 2})
		}})
	wcs := make([]iwarp.WC, 1)
	must(server.RecvCQ().Wait(ctx, wcs))
	fmt.Println(wcs[0].Op, wcs[0].ID, wcs[0].Status)
	must(client.SendCQ().Wait(ctx, wcs))
	fmt.Println(wcs[0].Op, wcs[0].ID, wcs[0].Status)
	// Output:
	// Receive 2 success
	// Send 1 success
}

// After Drain the memory of all work that was posted before belongs to the caller again.
func ExampleQP_Drain() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	client, _ := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{})
	for id := range uint64(3) {
		check(client.PostSend(iwarp.SendWR{ID: id, Op: iwarp.OpRDMARead})) // of nothing
	}
	check(client.Drain(ctx))
	fmt.Println(client.SendCQ().Poll(make([]iwarp.WC, 8)), "completions")
	// Output: 3 completions
}

// The application tells its peer that it cannot continue.
func ExampleQP_Terminate() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	client, server := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{})
	check(client.Terminate())
	<-server.Done()
	var terminate *iwarp.TerminateError
	fmt.Println(errors.As(server.Err(), &terminate), terminate.Remote, terminate.Layer, terminate.Type, terminate.Code)
	// Output: true true 0 0 0
}

// A CQ grows before more queue pairs are attached to it.
func ExampleCQ_Resize() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	cq := must(rnic.CreateCQ(128))
	check(cq.Resize(4 * 128))
	fmt.Println(cq.Resize(0))
	// Output: iwarp: CQ of depth 0, less than 1
}

// Receives are posted before the messages arrive, and again after each message was processed.
// The ID says which part of the memory a message is in.
func ExampleQP_PostRecv() {
	client, server, pd, done := pair()
	defer done()

	const slot, slots = 16, 4
	memory := make([]byte, slot*slots)
	mr := must(pd.RegisterMR(memory, stag.LocalWrite, nil))
	post := func(i uint64) error {
		return server.PostRecv(iwarp.RecvWR{ID: i, Local: []iwarp.SGE{mr.Slice(int(i)*slot, slot)}})
	}
	for i := range uint64(slots) {
		check(post(i))
	}

	for n := range 6 {
		check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: fmt.Appendf(nil, "message %d", n)}))
		var wcs [1]iwarp.WC
		must(server.RecvCQ().Wait(context.Background(), wcs[:]))
		wc := &wcs[0]
		check(wc.Err())
		fmt.Printf("%d: %s\n", wc.ID, memory[wc.ID*slot:][:wc.Len])
		check(post(wc.ID))
	}
	// Output:
	// 0: message 0
	// 1: message 1
	// 2: message 2
	// 3: message 3
	// 0: message 4
	// 1: message 5
}

// One receive at a time is enough for a request-response protocol.
func ExampleQP_Recv() {
	client, server, pd, done := pair()
	defer done()
	ctx := context.Background()

	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("what time is it?")}))
	memory := make([]byte, 64)
	mr := must(pd.RegisterMR(memory, stag.LocalWrite, nil))
	n := must(server.Recv(ctx, mr.Slice(0, 64))) // the message may have waited for it: see QPConfig.RNRWait
	fmt.Printf("%s\n", memory[:n])
	// Output: what time is it?
}

// What fits in one work request, and what is sent in one segment.
func ExampleQP_MaxSizes() {
	client, _, _, done := pair()
	defer done()
	sizes := client.MaxSizes()
	fmt.Println(sizes.Message, "octets in a message,", sizes.Inline, "of them inline")
	fmt.Println("a page in one segment:", sizes.TaggedSegment >= 4096)
	// Output:
	// 4294967295 octets in a message, 1024 of them inline
	// a page in one segment: true
}

// Counters show what a connection has transferred.
func ExampleQP_Stats() {
	client, server, pd, done := pair()
	defer done()
	theirs := must(pd.RegisterMR(make([]byte, 4096), stag.RemoteRead, nil)).Advertise(0, 4096)
	must(client.Remote(theirs).ReadAt(make([]byte, 1000), 0))
	must(client.Remote(theirs).ReadAt(make([]byte, 3000), 0))

	sent, received := client.Stats().Sent, client.Stats().Received
	fmt.Println(sent.ReadRequest.Messages, "requests,", received.ReadResponse.Octets, "octets")
	fmt.Println(server.Stats().Sent.ReadResponse.Octets, "octets on the other side")
	// Output:
	// 2 requests, 4000 octets
	// 4000 octets on the other side
}

// A graceful end: posted work completes first, and both sides close.
func ExampleQP_Close() {
	client, server, _, done := pair()
	defer done()
	check(server.PostRecv(iwarp.RecvWR{ID: 1}))
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))

	closed := make(chan error)
	go func() { closed <- client.Close() }()
	var wcs [1]iwarp.WC
	must(server.RecvCQ().Wait(context.Background(), wcs[:])) // the last message: the two have agreed on that
	check(server.Close())
	check(<-closed)

	fmt.Println(wcs[0].Status, client.State(), client.Err())
	fmt.Println(errors.Is(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), net.ErrClosed))
	// Output:
	// success Idle <nil>
	// true
}

// An immediate end: incomplete work is flushed.
func ExampleQP_Abort() {
	client, server, _, done := pair()
	defer done()
	check(client.PostRecv(iwarp.RecvWR{ID: 1}))
	check(client.Abort())

	var wcs [1]iwarp.WC
	fmt.Println(client.RecvCQ().Poll(wcs[:]), wcs[0].Status, client.State())
	<-server.Done() // the other side has lost its connection
	fmt.Println(server.State(), errors.Is(server.Err(), net.ErrClosed))
	// Output:
	// 1 flushed Error
	// Error true
}

// Done reports that a connection has ended, and Err why.
func ExampleQP_Done() {
	client, server, _, done := pair()
	defer done()
	looked := make(chan bool)
	go func() {
		<-server.Done() // all its work requests are completed now
		fmt.Println(server.State(), server.Terminated().Remote)
		fmt.Println(server.Err())
		close(looked)
	}()

	check(client.Terminate())
	<-looked
	// Output:
	// Error true
	// iwarp: terminated by the peer: RDMAP local catastrophic (0/0/00)
}

// What ended a connection: the number for a log, and the meaning for the program.
func ExampleTerminateError() {
	client, server, _, done := pair()
	defer done()
	gone := iwarp.RemoteBuffer{STag: 0x12345678, Len: 8}
	must(client.Remote(gone).WriteAt([]byte("to where"), 0))
	<-server.Done()

	var terminate *iwarp.TerminateError
	if errors.As(server.Err(), &terminate) {
		fmt.Printf("layer %d, type %d, code %d\n", terminate.Layer, terminate.Type, terminate.Code)
	}
	fmt.Println(errors.Is(server.Err(), iwarp.ErrInvalidSTag))
	// Output:
	// layer 1, type 1, code 0
	// true
}

// A list of work requests is queued up to the first that is not valid.
func ExamplePostError() {
	client, _, _, done := pair()
	defer done()
	err := client.PostSend(
		iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead},
		iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Inline: make([]byte, 1<<20)}, // more than Limits.MaxInline
		iwarp.SendWR{ID: 3, Op: iwarp.OpRDMARead})
	var refused *iwarp.PostError
	fmt.Println(errors.As(err, &refused), refused.N, "queued")
	check(client.Drain(context.Background()))
	fmt.Println(client.SendCQ().Poll(make([]iwarp.WC, 8)), "completed")
	// Output:
	// true 1 queued
	// 1 completed
}

// A completion with an error contains the cause of the connection's end.
func ExampleWC_Err() {
	client, _, pd, done := pair()
	defer done()
	theirs := must(pd.RegisterMR(make([]byte, 8), stag.RemoteRead, nil)).Advertise(0, 8)
	theirs.Len = 16 // more than there is
	ours := must(pd.RegisterMR(make([]byte, 16), stag.LocalWrite, nil))
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{ours.Slice(0, 16)}, Remote: theirs}))

	var wcs [1]iwarp.WC
	must(client.SendCQ().Wait(context.Background(), wcs[:]))
	err := wcs[0].Err()
	var terminate *iwarp.TerminateError
	fmt.Println(wcs[0].Status)
	fmt.Println(errors.Is(err, iwarp.ErrBounds), errors.As(err, &terminate), errors.Is(err, net.ErrClosed))
	// Output:
	// remote access error
	// true true true
}

// A server that handles the completions of all its QPs in one place keeps the state of a client
// with the QP. So it is available even for a message that arrives before Accept has
// returned.
func ExampleQP_UserData() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	cq := must(rnic.CreateCQ(128))
	type session struct{ name string }

	config := iwarp.QPConfig{
		RecvCQ: cq, UserData: &session{"Ada"},
		Setup: func(_ context.Context, qp *iwarp.QP) error { return qp.PostRecv(iwarp.RecvWR{}) },
	}
	client, _ := joined(rnic, pd, iwarp.QPConfig{}, config)
	check(client.Send(ctx))

	var wcs [1]iwarp.WC
	must(cq.Wait(ctx, wcs[:]))
	from := wcs[0].QP.UserData().(*session)
	fmt.Println("a message of", from.name)
	// Output: a message of Ada
}
