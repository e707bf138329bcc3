package rma_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/rma"
)

// A server has a region, which a client reads and writes. Both have proved their identities, so
// everything is encrypted. When the region gets another key, the client opens it again.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rnic, pd, clientAuth, serverAuth := sides()
	defer func() { _ = rnic.Close() }()

	memory := rma.NewMemory(make([]byte, 1<<20))
	server := rma.NewServer(&rma.ServerConfig{PD: pd})
	region, err := server.Register(7, memory, nil)
	check(err)
	listener, err := rnic.Listen(ctx, "pipe", "", &iwarp.ListenConfig{Auth: serverAuth})
	check(err)
	go func() {
		_ = listener.Serve(ctx, func(request *iwarp.ConnRequest) {
			cfg := iwarp.QPConfig{PD: pd}
			check(rma.Prepare(rnic, &cfg, 64, 0))
			qp, err := request.Accept(ctx, &cfg)
			if err != nil {
				_ = cfg.SendCQ.Close()
				return
			}
			_ = server.Serve(ctx, qp)
		})
	}()

	cfg := iwarp.QPConfig{PD: pd, Auth: clientAuth}
	check(rma.Prepare(rnic, &cfg, 0, 64))
	qp, err := rnic.Dial(ctx, "pipe", listener.Addr().String(), &cfg)
	check(err)
	client, err := rma.NewClient(ctx, qp, &rma.ClientConfig{PD: pd})
	check(err)
	handle, err := client.Open(ctx, 7, rma.MayRead|rma.MayWrite)
	check(err)

	// An Executor moves any number of octets.
	portal, err := client.Portal(16)
	check(err)
	executor := rma.NewExecutor(portal)
	n, err := executor.WriteAt(ctx, handle, make([]byte, 100_000), 0)
	fmt.Println("written:", n, err)
	memory.Update(func(b []byte) { copy(b, "hello") })

	// A Portal runs single operations.
	one, err := client.Portal(1)
	check(err)
	read := func() {
		buf := make([]byte, 5)
		_, err = one.Post(rma.Command{Op: rma.Read, Handle: handle, Buf: buf})
		check(err)
		var ends [1]rma.Completion
		_, err = one.Wait(ctx, ends[:])
		check(err)
		fmt.Printf("%q, refused: %t\n", buf, errors.Is(ends[0].Err, rma.ErrRemoteAuth))
	}
	read()
	_, err = region.Rekey(ctx, nil, 0)
	check(err)
	read()
	check(handle.Reopen(ctx))
	read()
	check(client.Close())
	// Output:
	// written: 100000 <nil>
	// "hello", refused: false
	// "\x00\x00\x00\x00\x00", refused: true
	// "hello", refused: false
}

// sides sets up what the example needs from other packages.
func sides() (rnic *iwarp.RNIC, pd *iwarp.PD, client, server *cm.Auth) {
	rnic, err := iwarp.Open(nil)
	check(err)
	pd, err = rnic.AllocPD()
	check(err)
	secret := []byte("thirty-two octets, random ones !")
	name := [16]byte([]byte("client-000000001"))
	mine, err := cm.NewRing(cm.Key{ID: 1, Secret: cm.ClientKey(secret, 1, name), Primary: true})
	check(err)
	all, err := cm.NewRing(cm.Key{ID: 1, Secret: secret, Derive: true})
	check(err)
	client, err = cm.New(&cm.Config{Ring: mine, ID: name})
	check(err)
	server, err = cm.New(&cm.Config{Ring: all, ID: [16]byte([]byte("server-000000001"))})
	check(err)
	return rnic, pd, client, server
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
