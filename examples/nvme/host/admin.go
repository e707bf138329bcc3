package host

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// Identify returns what the controller says of itself (Base 2.0, 5.17.2.1). It is what it said when it was
// connected last; without a connection Identify waits for one. The result is the caller's.
func (c *Controller) Identify(ctx context.Context) (*capsule.IdentifyController, error) {
	a, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	id := *a.id
	return &id, nil
}

// ReadLog reads the beginning of a log page, as much as p has room for (Base 2.0, 5.16): a multiple of 4
// octets, up to 64 KiB. lid is one of those of package capsule, such as capsule.LogSMART, which also has
// what parses them. Events that the page tells of are not cleared by that. A page that the controller does
// not have is a [capsule.StatusError]. After an error the contents of p are undefined.
func (c *Controller) ReadLog(ctx context.Context, lid uint8, p []byte) error {
	if n := len(p); n == 0 || n%4 != 0 || n > adminTransfer {
		return fmt.Errorf("nvme: %d octets of a log page, and not a multiple of 4 up to %d", n, adminTransfer)
	}
	a, err := c.current(ctx)
	if err != nil {
		return err
	}
	_, err = a.command(ctx, capsule.NewGetLogPage(lid, 0, uint32(len(p)), true).SQE(0, capsule.SGL{}), p)
	return err
}
