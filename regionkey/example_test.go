package regionkey_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/regionkey"
)

// The server derives a key for a client, and a rotation makes the key worthless.
func ExampleRing() {
	ring, err := regionkey.NewRing(7, nil)
	if err != nil {
		panic(err)
	}
	defer ring.Close()
	now := time.Now()
	client, process := [32]byte{1}, [16]byte{1}
	key, err := ring.Derive(now, ring.Current(), client, process, regionkey.Read)
	fmt.Println(key, err) // the secret is not printed
	if _, err := ring.Rekey(now, nil, time.Second); err != nil {
		panic(err)
	}
	_, during := ring.Derive(now, 1, client, process, regionkey.Read)
	_, after := ring.Derive(now.Add(time.Minute), 1, client, process, regionkey.Read)
	fmt.Println("epoch", ring.Current(), "- in the grace:", during == nil, "- after it: stale", errors.Is(after, regionkey.ErrStale))
	// Output:
	// regionkey.Key <nil>
	// epoch 2 - in the grace: true - after it: stale true
}
