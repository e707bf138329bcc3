package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A control carries the messages of the control protocol over one QP. Since
// requests and answers alternate, one receive is always enough: it is posted again
// as soon as a message has been taken out of it, and before it can be answered.
type control struct {
	pd *iwarp.PD
	qp *iwarp.QP
	mr *iwarp.MR // the region of in and out together

	in, out []byte
}

// setup is a QPConfig.Setup: the receive is posted before the peer can send.
func (c *control) setup(_ context.Context, qp *iwarp.QP) error {
	buf := make([]byte, 2*maxMessage)
	mr, err := c.pd.RegisterMR(buf, stag.LocalWrite, &iwarp.MROptions{QP: qp})
	if err != nil {
		return err
	}
	c.qp, c.mr = qp, mr
	c.in, c.out = buf[:maxMessage], buf[maxMessage:]
	return c.post()
}

func (c *control) post() error {
	return c.qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{c.mr.Slice(0, maxMessage)}})
}

// send sends v and returns when the QP no longer needs the octets. Like recv, it
// returns io.EOF when the peer has ended the connection gracefully.
func (c *control) send(ctx context.Context, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("a control message of %d octets, at most %d", len(b), maxMessage)
	}
	n := copy(c.out, b)
	return c.cause(c.qp.Send(ctx, c.mr.Slice(maxMessage, n)))
}

// recv waits for the next message.
func (c *control) recv(ctx context.Context, v any) error {
	var wcs [1]iwarp.WC
	if _, err := c.qp.RecvCQ().Wait(ctx, wcs[:]); err != nil {
		return err
	}
	wc := &wcs[0]
	if err := wc.Err(); err != nil {
		return c.cause(err)
	}
	if err := json.Unmarshal(c.in[:wc.Len], v); err != nil {
		return fmt.Errorf("control message: %w", err)
	}
	return c.post()
}

// cause distinguishes the end of the connection from an error: a QP that has ended
// gracefully has no error of its own, and only refuses or flushes its work.
func (c *control) cause(err error) error {
	refused, flushed := errors.Is(err, net.ErrClosed), errors.Is(err, iwarp.ErrFlushed)
	if (refused || flushed) && c.qp.Err() == nil {
		return io.EOF
	}
	return err
}

// register makes a file accessible to this connection and to no other. The file is
// the region: writes of the peer go straight to WriteAt. An empty file has no region.
func (c *control) register(b fileBuffer, access stag.Access) (*iwarp.MR, error) {
	if b.size == 0 {
		return nil, nil
	}
	return c.pd.RegisterBuffer(b, access, &iwarp.MROptions{QP: c.qp})
}

// deregister ends the peer's access to the region that register returned.
func deregister(mr *iwarp.MR) error {
	if mr == nil {
		return nil
	}
	return mr.Close()
}
