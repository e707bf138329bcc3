package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// authenticators returns the Authenticators of a client, which holds a key of its own, and of the
// server, which holds the secret that all those keys are derived from.
func authenticators() (client, server *cm.Auth) {
	secret := []byte("thirty-two octets, random ones !")
	name := [16]byte([]byte("client-000000001"))
	mine := must(cm.NewRing(cm.Key{ID: 1, Secret: cm.ClientKey(secret, 1, name), Group: "lab", Primary: true}))
	all := must(cm.NewRing(cm.Key{ID: 1, Secret: secret, Derive: true, Group: "lab"}))
	client = must(cm.New(&cm.Config{Ring: mine, ID: name}))
	server = must(cm.New(&cm.Config{Ring: all, ID: [16]byte([]byte("server-000000001"))}))
	return client, server
}

// A listener with an Authenticator serves each request in a goroutine of its own, because Accept
// waits until the initiator has proved its identity.
func ExampleListener_Serve() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	clientAuth, serverAuth := authenticators()

	listener := must(rnic.Listen(ctx, "tcp", "127.0.0.1:0", &iwarp.ListenConfig{Auth: serverAuth}))
	defer listener.Close()
	served := make(chan *iwarp.QP, 1)
	handle := func(request *iwarp.ConnRequest) {
		qp, err := request.Accept(ctx, &iwarp.QPConfig{PD: pd})
		if err != nil {
			return // the log of the Authenticator has the reason
		}
		served <- qp
	}
	go func() { _ = listener.Serve(ctx, handle) }() // until ctx ends

	must(rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd, Auth: clientAuth}))
	peer, known := (<-served).Peer()
	fmt.Printf("%t: %s of %s\n", known, peer.Name[:], peer.Group)

	_, err := rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd})
	fmt.Println("without a key:", err != nil)
	// Output:
	// true: client-000000001 of lab
	// without a key: true
}

// authenticated connects a client and a server that have proved their identities to each other.
func authenticated(handle func(*iwarp.ConnRequest)) (client, server *iwarp.QP, done func()) {
	ctx := context.Background()
	rnic := must(iwarp.Open(nil))
	pd := must(rnic.AllocPD())
	clientAuth, serverAuth := authenticators()
	listener := must(rnic.Listen(ctx, "pipe", "", &iwarp.ListenConfig{Auth: serverAuth}))
	defer listener.Close()
	accepted := make(chan *iwarp.QP)
	go func() {
		request := must(listener.Accept(ctx))
		handle(request)
		accepted <- must(request.Accept(ctx, &iwarp.QPConfig{PD: pd}))
	}()
	client = must(rnic.Dial(ctx, "pipe", listener.Addr().String(), &iwarp.QPConfig{PD: pd, Auth: clientAuth}))
	return client, <-accepted, func() { check(rnic.Close()) }
}

// Both sides know which peer they are connected to.
func ExampleQP_Peer() {
	client, server, done := authenticated(func(*iwarp.ConnRequest) {})
	defer done()
	for _, qp := range []*iwarp.QP{client, server} {
		peer, known := qp.Peer()
		fmt.Printf("%t: %s\n", known, peer.Name[:])
	}
	// Output:
	// true: server-000000001
	// true: client-000000001
}

// The peer of a request is known before the request is answered. Only when Accept has returned is it
// certain that it is not an old request.
func ExampleConnRequest_Peer() {
	_, _, done := authenticated(func(request *iwarp.ConnRequest) {
		peer, known := request.Peer()
		fmt.Printf("%t: %s\n", known, peer.Name[:])
	})
	defer done()
	// Output: true: client-000000001
}

// Both sides derive the same key from those of the connection, for a use of their own.
func ExampleQP_Export() {
	client, server, done := authenticated(func(*iwarp.ConnRequest) {})
	defer done()
	key := must(client.Export("my protocol", []byte("stream 1"), 32))
	same := must(server.Export("my protocol", []byte("stream 1"), 32))
	other := must(server.Export("my protocol", []byte("stream 2"), 32))
	fmt.Println(len(key), bytes.Equal(key, same), bytes.Equal(key, other))

	plain, _, _, end := pair()
	defer end()
	_, err := plain.Export("my protocol", nil, 32)
	fmt.Println(errors.Is(err, iwarp.ErrUnsupported))
	// Output:
	// 32 true false
	// true
}

// A trace shows the progress of a set-up.
func ExampleSetupStage_String() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	stages := &iwarp.SetupTrace{Leave: func(s iwarp.SetupStage, err error) { fmt.Println(s, err == nil) }}
	joined(rnic, pd, iwarp.QPConfig{SetupTrace: stages}, iwarp.QPConfig{})
	// Output:
	// QP true
	// dial true
	// request true
	// reply true
	// confirm true
	// ready true
}
