package iwarp_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
)

// What Setup posts goes out as soon as the connection is there.
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

// After Drain the memory of everything that was posted before is the caller's again.
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

// The application tells its peer that it cannot go on.
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
	// Output: iwarp: CQ of depth 0
}
