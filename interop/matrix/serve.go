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

// served is how much memory the other end of our own has for each connection.
const served = 1 << 20

// Serve is the other end where that is ours, too: a program of its own. It lends each
// client a region, which it advertises in its private data, and sends back what it is sent.
// It says "ready" once it listens, and how every connection has ended.
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

// serve serves one client to its end.
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
