package iwarp_test

import (
	"context"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// What all QPs of an RNIC have done, including QPs that have ended, and how long it took.
func ExampleRNIC_Stats() {
	rnic := must(iwarp.Open(&iwarp.Config{Latency: true}))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	client, _ := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{})
	theirs := must(pd.RegisterMR(make([]byte, 4096), stag.RemoteRead, nil)).Advertise(0, 4096)
	must(client.Remote(theirs).ReadAt(make([]byte, 1000), 0))
	check(client.Close())

	for _, path := range rnic.Stats().Paths {
		fmt.Println(path.Path+":", path.Made, "QPs made,", path.Sent.ReadResponse.Octets, "octets read")
		for _, l := range path.Latency {
			fmt.Println(l.Op, "within a minute:", l.Sum > 0 && l.Sum < time.Minute)
		}
	}
	// Output:
	// pipe: 2 QPs made, 1000 octets read
	// RDMA Read within a minute: true
}

// The current QPs.
func ExampleRNIC_QPs() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	joined(rnic, must(rnic.AllocPD()), iwarp.QPConfig{UserData: "client"}, iwarp.QPConfig{UserData: "server"})

	found := map[any]iwarp.State{}
	for qp := range rnic.QPs() {
		found[qp.UserData()] = qp.State()
	}
	fmt.Println(found)
	// Output:
	// map[client:RTS server:RTS]
}

// The kernel knows the round trip of a TCP connection, but nothing about a pipe.
func ExampleQP_TCP() {
	client, _, _, done := pair()
	defer done()
	if tcp, ok := client.TCP(); ok {
		fmt.Println("round trip", tcp.RTT, "and", tcp.Retransmits, "segments sent again")
	} else {
		fmt.Println(client.Stats().Path, "is not TCP")
	}
	// Output:
	// pipe is not TCP
}

// How full a CQ is: completions that were not polled fill it, and when it is full further ones are lost.
func ExampleCQ_Stats() {
	client, _, _, done := pair()
	defer done()
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead})) // of nothing
	check(client.Drain(context.Background()))
	s := client.SendCQ().Stats()
	fmt.Println(s.Waiting, "of", s.Depth)
	// Output:
	// 1 of 128
}
