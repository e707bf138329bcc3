package dump_test

import (
	"fmt"
	"os"

	"github.com/goiwarp/iwarp/internal/dump"
)

// A capture as lines: of rping, which has a Terminate at its end.
func ExampleCapture() {
	file, err := os.Open("../pcap/testdata/terminate_ddp_bounds.pcap")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	err = dump.Capture(file, dump.Config{}, func(records []dump.Record) error {
		for _, r := range records {
			if r.RDMAP != nil {
				fmt.Printf("packet %d: %s of %d octets\n", r.Packet, r.RDMAP.Name, r.DDP.Length)
			}
			if r.RDMAP != nil && r.RDMAP.Terminate != nil {
				fmt.Println(r.RDMAP.Terminate.Name)
			}
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// packet 8: Send of 16 octets
	// packet 9: RDMA Read Request of 28 octets
	// packet 11: RDMA Read Response of 1428 octets
	// packet 13: Terminate of 20 octets
	// DDP tagged buffer: base or bounds violation (1/1/01)
}
