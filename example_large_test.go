//go:build !(386 || arm || mips || mipsle)

package iwarp_test

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// zeros is a Buffer of this many zero octets.
type zeros int64

func (z zeros) Size() int64 { return int64(z) }

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

func (zeros) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// A region of 4 GiB or more, whose length needs an int of 64 bits, takes several RemoteBuffers. A length beyond the region
// is an error.
func ExampleMR_AdvertiseRange() {
	rnic := must(iwarp.Open(nil))
	defer rnic.Close()
	pd := must(rnic.AllocPD())
	region := must(pd.RegisterBuffer(zeros(5<<30), stag.RemoteRead, nil))

	for _, rb := range must(region.AdvertiseRange(0, 5<<30)) {
		fmt.Printf("TO %#x: %d MiB\n", rb.TO, rb.Len>>20)
	}
	_, err := region.AdvertiseRange(0, 6<<30)
	fmt.Println(err)
	// Output:
	// TO 0x0: 2048 MiB
	// TO 0x80000000: 2048 MiB
	// TO 0x100000000: 1024 MiB
	// iwarp: outside the bounds of the region: 6442450944 octets from 0 of 5368709120
}
