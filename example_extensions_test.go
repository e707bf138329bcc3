package iwarp_test

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
)

// The extensions that this side supports fit in an octet of private data.
func ExampleQP_Extensions() {
	client, _, _, done := pair()
	defer done()

	takes := client.Extensions()
	fmt.Println(takes&iwarp.ExtImmediate != 0, takes&iwarp.ExtAtomic != 0, takes&iwarp.ExtCommit != 0)
	// Output: true true false
}

// The two applications negotiate in their private data which extensions they use.
func ExampleQP_SetPeerExtensions() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	client, _ := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{PrivateData: []byte{byte(iwarp.ExtAtomic)}})

	fmt.Println(client.PeerExtensions() == 0)
	client.SetPeerExtensions(iwarp.Extensions(client.PrivateData()[0]))
	fmt.Println(client.PeerExtensions() == iwarp.ExtAtomic)
	// Output:
	// true
	// true
}

// The peer is known to support the extensions that it has used or answered.
func ExampleQP_PeerExtensions() {
	client, server, _, done := pair()
	defer done()
	check(server.PostRecv(iwarp.RecvWR{}))

	fmt.Println(server.PeerExtensions() == 0)
	check(client.PostSend(iwarp.SendWR{Op: iwarp.OpImmediate, Imm: [8]byte{1}}))
	must(server.RecvCQ().Wait(context.Background(), make([]iwarp.WC, 1)))
	fmt.Println(server.PeerExtensions() == iwarp.ExtImmediate)
	// Output:
	// true
	// true
}
