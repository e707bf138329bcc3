package cm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// A server with a master key and a client that holds a key of its own. The frames are those
// that the library exchanges if QPConfig.Auth and ListenConfig.Auth are set.
func Example() {
	master := []byte("thirty-two octets, random ones !")
	clientID := [16]byte{'n', 'o', 'd', 'e', '1'}

	serverKeys, err := cm.NewRing(cm.Key{ID: 1, Secret: master, Derive: true, Group: "lab"})
	check(err)
	server, err := cm.New(&cm.Config{Ring: serverKeys, ID: [16]byte{'s', 't', 'o', 'r', 'e'}})
	check(err)

	clientKeys, err := cm.NewRing(cm.Key{ID: 1, Secret: cm.ClientKey(master, 1, clientID), Group: "lab", Primary: true})
	check(err)
	client, err := cm.New(&cm.Config{Ring: clientKeys, ID: clientID, ExpectServer: func(p iwarp.Peer) error {
		if p.Name != [16]byte{'s', 't', 'o', 'r', 'e'} {
			return errors.New("another server")
		}
		return nil
	}})
	check(err)

	c, err := client.Initiate(context.Background(), &iwarp.AuthInfo{})
	check(err)
	defer c.Close()
	s, err := server.Respond(context.Background(), &iwarp.AuthInfo{})
	check(err)
	defer s.Close()

	start := []byte("header of the Request")
	request, err := c.Wrap(start, []byte("hello"))
	check(err)
	app, err := s.Open(request, len(start))
	check(err)
	peer := s.Peer()
	fmt.Printf("%s from %s\n", app, peer.Name[:5])

	start = []byte("header of the Reply")
	reply, err := s.Wrap(start, []byte("welcome"))
	check(err)
	app, err = c.Open(reply, len(start))
	check(err)
	peer = c.Peer()
	fmt.Printf("%s from %s\n", app, peer.Name[:5])

	first, err := c.First()
	check(err)
	check(s.VerifyFirst(first))
	fmt.Println("ready")
	// Output:
	// hello from node1
	// welcome from store
	// ready
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
