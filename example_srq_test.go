package iwarp_test

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// joined connects a client and a server within the process. What their configurations
// leave open is filled in.
func joined(rnic *iwarp.RNIC, pd *iwarp.PD, clientConfig, serverConfig iwarp.QPConfig) (client, server *iwarp.QP) {
	ctx := context.Background()
	clientConfig.PD, serverConfig.PD = pd, pd
	listener := must(rnic.Listen(ctx, "pipe", "", nil))
	defer listener.Close()
	accepted := make(chan *iwarp.QP)
	go func() {
		request := must(listener.Accept(ctx))
		accepted <- must(request.Accept(ctx, &serverConfig))
	}()
	client = must(rnic.Dial(ctx, "pipe", listener.Addr().String(), &clientConfig))
	return client, <-accepted
}

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

// The application is told in time when receives become few.
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

// The application is told when one client occupies many of the receives that all share.
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
