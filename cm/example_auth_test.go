package cm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// A server with a master key, and a client with a key derived from it. A client without a key is
// refused.
func ExampleAuth() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rnic, pd := opens()
	defer func() { _ = rnic.Close() }()
	master := []byte("thirty-two octets, random ones !")
	clientID, serverID := [16]byte{'n', 'o', 'd', 'e', '1'}, [16]byte{'s', 't', 'o', 'r', 'e'}

	serverRing, err := cm.NewRing(cm.Key{ID: 1, Secret: master, Derive: true})
	check(err)
	server, err := cm.New(&cm.Config{Ring: serverRing, ID: serverID})
	check(err)
	listener, err := rnic.Listen(ctx, "pipe", "", &iwarp.ListenConfig{Auth: server})
	check(err)
	clients := make(chan iwarp.Peer, 1)
	go func() {
		_ = listener.Serve(ctx, func(request *iwarp.ConnRequest) {
			qp, err := request.Accept(ctx, &iwarp.QPConfig{PD: pd})
			if err != nil {
				return
			}
			peer, _ := qp.Peer()
			clients <- peer
		})
	}()

	clientRing, err := cm.NewRing(cm.Key{ID: 1, Secret: cm.ClientKey(master, 1, clientID), Primary: true})
	check(err)
	client, err := cm.New(&cm.Config{Ring: clientRing, ID: clientID})
	check(err)
	qp, err := rnic.Dial(ctx, "pipe", listener.Addr().String(), &iwarp.QPConfig{PD: pd, Auth: client})
	check(err)
	peer, _ := qp.Peer()
	fmt.Printf("the client has found %s\n", peer.Name[:5])
	peer = <-clients
	fmt.Printf("the server has found %s\n", peer.Name[:5])

	wrongRing, err := cm.NewRing(cm.Key{ID: 1, Secret: []byte("a key that is not derived from it"), Primary: true})
	check(err)
	wrong, err := cm.New(&cm.Config{Ring: wrongRing, ID: clientID})
	check(err)
	_, err = rnic.Dial(ctx, "pipe", listener.Addr().String(), &iwarp.QPConfig{PD: pd, Auth: wrong})
	fmt.Println("refused:", errors.Is(err, iwarp.ErrAuth))
	// Output:
	// the client has found store
	// the server has found node1
	// refused: true
}
