package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// A server reads from the memory of many clients. However many there are, at most 1 MiB is in transit
// to the server. Reads of class Latency fail early if the window is the bottleneck.
func ExampleNewSolicitor() {
	solicitor := iwarp.NewSolicitor(solicit.Config{
		Fixed:    1 << 20,
		Dispatch: [2]time.Duration{solicit.Latency: solicit.DispatchLatency},
	})
	rnic := must(iwarp.Open(nil))
	pd := must(rnic.AllocPD())
	_, server := joined(rnic, pd, iwarp.QPConfig{}, iwarp.QPConfig{Solicitor: solicitor})
	theirs := must(pd.RegisterMR([]byte("octets of a client"), stag.RemoteRead, nil)).Advertise(0, 18)
	memory := make([]byte, 18)
	ours := must(pd.RegisterMR(memory, stag.LocalWrite, nil))

	_, err := server.Do(context.Background(),
		iwarp.SendWR{Op: iwarp.OpRDMARead, Class: solicit.Latency, Local: []iwarp.SGE{ours.Slice(0, 18)}, Remote: theirs})
	if errors.Is(err, iwarp.ErrDispatchTimeout) {
		fmt.Println("nothing was sent; the QP can be used as before")
	}
	check(err)
	fmt.Printf("%s\n", memory)
	check(rnic.Close())
	check(solicitor.Close())
	// Output: octets of a client
}

// The window is full again when no Read is under way.
func ExampleSolicitor_Stats() {
	solicitor := iwarp.NewSolicitor(solicit.Config{Fixed: 1 << 20})
	stats := solicitor.Stats()
	fmt.Println(stats.Granted, "of", stats.Limit, "octets are granted")
	// Output: 0 of 1048576 octets are granted
}

// A Solicitor is closed after its QPs have ended.
func ExampleSolicitor_Close() {
	solicitor := iwarp.NewSolicitor(solicit.Config{})
	rnic := must(iwarp.Open(nil))
	pd := must(rnic.AllocPD())
	joined(rnic, pd, iwarp.QPConfig{Solicitor: solicitor}, iwarp.QPConfig{Solicitor: solicitor})
	fmt.Println(solicitor.Close())
	check(rnic.Close())
	fmt.Println(solicitor.Close())
	// Output:
	// iwarp: close Solicitor: still in use by 2 queue pairs
	// <nil>
}
