package host

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// Identify returns the controller's description of itself (Base 2.0, 5.17.2.1), as of the latest connection.
// Without a connection Identify waits for one. The caller owns the result.
func (c *Controller) Identify(ctx context.Context) (*capsule.IdentifyController, error) {
	a, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	id := *a.id
	return &id, nil
}

// ReadLog reads the beginning of a log page into p (Base 2.0, 5.16), whose length must be a multiple of 4
// octets, up to 64 KiB. lid is a constant of package capsule, such as capsule.LogSMART; package capsule also
// parses the pages. Reading does not clear the events that the page reports. If the controller does not
// have the page, the error is a [capsule.StatusError]. After an error the contents of p are undefined.
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
