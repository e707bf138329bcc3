package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
)

// One CQ serves many queue pairs; each completion names its queue pair.
func ExampleRNIC_CreateCQ() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())

	cq := must(rnic.CreateCQ(2 * 8)) // room for all that may be posted at once
	config := iwarp.QPConfig{SendCQ: cq, SendDepth: 8}
	ada, _ := joined(rnic, pd, config, iwarp.QPConfig{})
	grace, _ := joined(rnic, pd, config, iwarp.QPConfig{})
	names := map[*iwarp.QP]string{ada: "Ada", grace: "Grace"}

	for _, qp := range []*iwarp.QP{grace, ada} {
		check(qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead})) // of nothing
		var wcs [1]iwarp.WC
		must(cq.Wait(ctx, wcs[:]))
		fmt.Println(names[wcs[0].QP], wcs[0].Status)
	}
	// Output:
	// Grace success
	// Ada success
}

// Poll takes the available completions and never waits: for a program that has other things to do.
func ExampleCQ_Poll() {
	client, _, _, done := pair()
	defer done()

	check(client.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead}, iwarp.SendWR{ID: 2, Op: iwarp.OpRDMARead}))
	var wcs [8]iwarp.WC
	for outstanding := 2; outstanding > 0; {
		n := client.SendCQ().Poll(wcs[:])
		for _, wc := range wcs[:n] {
			fmt.Println(wc.ID, wc.Op, wc.Status)
		}
		outstanding -= n
		time.Sleep(time.Millisecond) // the other things
	}
	// Output:
	// 1 RDMA Read success
	// 2 RDMA Read success
}

// Signal makes a goroutine return from its wait for completions, here because there is other work.
func ExampleCQ_Signal() {
	client, _, _, done := pair()
	defer done()

	orders := make(chan string, 1)
	go func() {
		orders <- "an order"
		client.SendCQ().Signal()
	}()
	var wcs [8]iwarp.WC
	n := must(client.SendCQ().Wait(context.Background(), wcs[:]))
	fmt.Println(n, "completions, and", <-orders)
	// Output:
	// 0 completions, and an order
}

// Wait sleeps until there is a completion, and takes as many as fit.
func ExampleCQ_Wait() {
	client, _, _, done := pair()
	defer done()

	check(client.PostSend(iwarp.SendWR{ID: 1, Op: iwarp.OpRDMARead}))
	var wcs [8]iwarp.WC
	n := must(client.SendCQ().Wait(context.Background(), wcs[:]))
	fmt.Println(n, wcs[0].ID, wcs[0].Op, wcs[0].Status)

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := client.SendCQ().Wait(ctx, wcs[:]) // nothing is posted
	fmt.Println(err)
	// Output:
	// 1 1 RDMA Read success
	// context deadline exceeded
}

// The peer sends a list and marks its end: the program wakes up once, for all of it.
func ExampleCQ_WaitSolicited() {
	client, server, _, done := pair()
	defer done()

	check(server.PostRecv(iwarp.RecvWR{ID: 1}, iwarp.RecvWR{ID: 2}, iwarp.RecvWR{ID: 3}))
	for _, flags := range []iwarp.Flags{0, 0, iwarp.Solicited} {
		check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Flags: flags}))
	}
	var wcs [8]iwarp.WC
	n := must(server.RecvCQ().WaitSolicited(context.Background(), wcs[:]))
	fmt.Println(n, "messages")
	// Output: 3 messages
}

// A loop over completions as they arrive.
func ExampleCQ_All() {
	client, server, _, done := pair()
	defer done()

	check(server.PostRecv(iwarp.RecvWR{ID: 1}, iwarp.RecvWR{ID: 2}))
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
	go client.Close() // after the message

	for wc, err := range server.RecvCQ().All(context.Background()) {
		check(err) // the CQ was closed, or the context has ended
		fmt.Println(wc.ID, wc.Status)
		if wc.Status != iwarp.StatusSuccess {
			check(server.Close()) // our half
			break
		}
	}
	// Output:
	// 1 success
	// 2 flushed
}

// A ping-pong that would rather spend processor time than the microseconds that waking
// up takes. Busy polling works over TCP.
func ExampleCQ_SetBusyPoll() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	listener := must(rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil))
	go func() { must(must(listener.Accept(ctx)).Accept(ctx, &iwarp.QPConfig{PD: pd})) }()
	qp := must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd}))

	qp.SendCQ().SetBusyPoll(50 * time.Microsecond)
	for range 3 {
		check(qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{})) // there and back
	}
	fmt.Println(qp.Stats().Sent.ReadRequest.Messages, "round trips")
	// Output: 3 round trips
}

// A ping-pong that would rather have a thread of its own than the microseconds that the Go
// scheduler takes to wake a goroutine. Blocking works over TCP on Linux; elsewhere the
// goroutine parks.
func ExampleCQ_SetWaitMode() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	listener := must(rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil))
	go func() { must(must(listener.Accept(ctx)).Accept(ctx, &iwarp.QPConfig{PD: pd})) }()
	qp := must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd}))

	qp.SendCQ().SetWaitMode(iwarp.WaitBlock)
	for range 3 {
		check(qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{})) // there and back
	}
	fmt.Println(qp.Stats().Sent.ReadRequest.Messages, "round trips")
	// Output: 3 round trips
}

// A CQ outlives its queue pairs; closing it ends the loops that wait for it.
func ExampleCQ_Close() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	cq := must(rnic.CreateCQ(256))
	client, _ := joined(rnic, pd, iwarp.QPConfig{SendCQ: cq, RecvCQ: cq}, iwarp.QPConfig{})

	loop := make(chan error)
	go func() {
		var wcs [8]iwarp.WC
		_, err := cq.Wait(context.Background(), wcs[:])
		loop <- err
	}()
	fmt.Println("in use:", cq.Close() != nil)
	check(client.Abort())
	check(cq.Close())
	fmt.Println("woken:", errors.Is(<-loop, net.ErrClosed))
	// Output:
	// in use: true
	// woken: true
}
