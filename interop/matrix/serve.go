package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// served is the length of the region that Serve provides for each connection.
const served = 1 << 20

// Serve is the other end if that is this library, too; it runs in a separate program. It
// advertises a region to each client in its private data, and returns all messages that it receives.
// It prints "ready" once it listens, and how each connection has ended.
func Serve(ctx context.Context, network, addr string, say io.Writer) error {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return err
	}
	defer rnic.Close() //nolint:errcheck // the program ends
	pd, err := rnic.AllocPD()
	if err != nil {
		return err
	}
	l, err := rnic.Listen(ctx, network, addr, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(say, "ready")
	for {
		cr, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			fmt.Fprintf(say, "%v has ended: %v\n", cr.RemoteAddr(), serve(ctx, pd, cr))
		}()
	}
}

// serve serves one client until the connection ends.
func serve(ctx context.Context, pd *iwarp.PD, cr *iwarp.ConnRequest) error {
	region, err := pd.RegisterMR(make([]byte, served), ourAll|stag.RemoteAtomic, nil)
	if err != nil {
		return err
	}
	message, err := pd.RegisterMR(make([]byte, served), stag.LocalWrite, nil)
	if err != nil {
		return err
	}
	offer, err := region.Advertise(0, served).AppendBinary(nil)
	if err != nil {
		return err
	}
	qp, err := cr.Accept(ctx, &iwarp.QPConfig{PD: pd, PrivateData: offer})
	if err != nil {
		return err
	}
	for err == nil {
		var n int
		if n, err = qp.Recv(ctx, message.Slice(0, served)); err == nil {
			err = qp.Send(ctx, message.Slice(0, n))
		}
	}
	if errors.Is(err, net.ErrClosed) && qp.Err() == nil {
		return nil
	}
	return err
}
