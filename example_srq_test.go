package iwarp_test

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A server with many clients posts receives once for all of them, and polls one CQ.
func ExamplePD_CreateSRQ() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())

	const slot, slots = 64, 8
	memory := make([]byte, slot*slots)
	mr := must(pd.RegisterMR(memory, stag.LocalWrite, nil))
	srq := must(pd.CreateSRQ(slots))
	for i := range slots {
		check(srq.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{mr.Slice(i*slot, slot)}}))
	}
	messages := must(rnic.CreateCQ(slots))
	server := iwarp.QPConfig{SRQ: srq, RecvCQ: messages, RecvDepth: 2} // no client may occupy more than two

	for _, name := range []string{"Ada", "Grace"} {
		client, _ := joined(rnic, pd, iwarp.QPConfig{}, server)
		check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("hello from " + name)}))

		wcs := make([]iwarp.WC, 1)
		must(messages.Wait(ctx, wcs))
		wc := wcs[0] // wc.QP tells whose message it is
		at := wc.ID * slot
		fmt.Printf("receive %d: %s\n", wc.ID, memory[at:at+uint64(wc.Len)])
		check(srq.PostRecv(iwarp.RecvWR{ID: wc.ID, Local: []iwarp.SGE{mr.Slice(int(at), slot)}}))
	}
	fmt.Println(srq.Stats().Free, "receives wait")
	// Output:
	// receive 0: hello from Ada
	// receive 1: hello from Grace
	// 8 receives wait
}

// An event informs the application in time that few receives are left.
func ExampleSRQ_SetLimit() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	srq := must(pd.CreateSRQ(8))
	check(srq.PostRecv(make([]iwarp.RecvWR, 4)...)) // for empty messages
	check(srq.SetLimit(3))

	client, _ := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{SRQ: srq})
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend}))
	event := <-rnic.Events()
	fmt.Println(event.Kind, event.SRQ == srq, srq.Stats().Free)
	check(srq.PostRecv(make([]iwarp.RecvWR, 2)...))
	check(srq.SetLimit(3)) // once for each arming
	// Output: SRQ limit true 2
}

// An event informs the application that one client occupies many of the shared receives.
func ExampleQP_SetRecvLimit() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	srq := must(pd.CreateSRQ(8))
	check(srq.PostRecv(make([]iwarp.RecvWR, 8)...))

	client, server := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{SRQ: srq})
	check(server.SetRecvLimit(1))
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpSend}))
	event := <-rnic.Events()
	fmt.Println(event.Kind, event.QP == server, server.Stats().SharedHeld, "held")
	// Output: receive limit true 2 held
}

// One buffer for whichever peer sends first.
func ExampleSRQ_PostRecv() {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	memory := make([]byte, 32)
	mr := must(pd.RegisterMR(memory, stag.LocalWrite, nil))
	srq := must(pd.CreateSRQ(1))
	check(srq.PostRecv(iwarp.RecvWR{ID: 1, Local: []iwarp.SGE{mr.Slice(0, 32)}}))

	messages := must(rnic.CreateCQ(8))
	server := iwarp.QPConfig{SRQ: srq, RecvCQ: messages, RecvDepth: 1}
	_, first := joined(rnic, pd, iwarp.QPConfig{}, server)
	client, second := joined(rnic, pd, iwarp.QPConfig{}, server)
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("here I am")}))

	var wcs [1]iwarp.WC
	must(messages.Wait(ctx, wcs[:]))
	fmt.Printf("%s; %v, %v\n", memory[:wcs[0].Len], wcs[0].QP == first, wcs[0].QP == second)
	// Output: here I am; false, true
}

// How many receives are left, and how many were used, shows how deep the SRQ should be.
func ExampleSRQ_Stats() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	srq := must(pd.CreateSRQ(8))
	check(srq.PostRecv(make([]iwarp.RecvWR, 5)...)) // for empty messages

	client, server := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{SRQ: srq})
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpSend}))
	var wcs [1]iwarp.WC
	must(server.RecvCQ().Wait(context.Background(), wcs[:]))
	stats := srq.Stats()
	fmt.Println(stats.Posted, "posted,", stats.Taken, "taken,", stats.Free, "left")
	// Output: 5 posted, 1 taken, 4 left
}
