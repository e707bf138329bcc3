package main

import (
	"context"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A pingEnd is one connection of either side: the QP, its messages and its data.
type pingEnd struct {
	qp     *iwarp.QP
	buf    []byte // the data of a ping
	mr     *iwarp.MR
	msg    []byte // one message to send, then as many to receive as can be outstanding
	msgs   *iwarp.MR
	source []byte // client only: what the server reads
	srcMR  *iwarp.MR
}

// inbound is how many receives are posted for messages of the peer: the protocol has one
// message outstanding, and a second receive covers the repost.
const inbound = 2

// newEnd registers the memory of one connection. withSource is for the client.
func (p *pinger) newEnd(withSource bool) (e *pingEnd, err error) {
	e = &pingEnd{buf: make([]byte, p.size), msg: make([]byte, (1+inbound)*infoLen)}
	defer func() {
		if err != nil {
			e.release()
		}
	}()
	if e.mr, err = p.pd.RegisterMR(e.buf, stag.LocalWrite|stag.RemoteWrite, nil); err != nil {
		return e, err
	}
	if e.msgs, err = p.pd.RegisterMR(e.msg, stag.LocalWrite, nil); err != nil {
		return e, err
	}
	if withSource {
		e.source = make([]byte, p.size)
		e.srcMR, err = p.pd.RegisterMR(e.source, stag.RemoteRead, nil)
	}
	return e, err
}

// release releases the memory. The QP must have ended.
func (e *pingEnd) release() {
	for _, mr := range []*iwarp.MR{e.mr, e.msgs, e.srcMR} {
		if mr != nil {
			_ = mr.Close() // fails only if it is closed already
		}
	}
}

// setup posts the receives before the peer can send.
func (e *pingEnd) setup(_ context.Context, qp *iwarp.QP) error {
	e.qp = qp
	for i := range inbound {
		if err := e.post(uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

func (e *pingEnd) slot(id uint64) int { return (1 + int(id)) * infoLen }

func (e *pingEnd) post(id uint64) error {
	return e.qp.PostRecv(iwarp.RecvWR{ID: id, Local: []iwarp.SGE{e.msgs.Slice(e.slot(id), infoLen)}})
}

// send tells the peer about a buffer.
func (e *pingEnd) send(ctx context.Context, rb iwarp.RemoteBuffer) error {
	putInfo(e.msg, rb)
	return e.qp.Send(ctx, e.msgs.Slice(0, infoLen))
}

// errLeft is what receive returns after the peer's graceful end.
var errLeft = fmt.Errorf("the peer has left: %w", net.ErrClosed)

// receive waits for a message of the peer.
func (e *pingEnd) receive(ctx context.Context) (iwarp.RemoteBuffer, error) {
	var wc [1]iwarp.WC
	if _, err := e.qp.RecvCQ().Wait(ctx, wc[:]); err != nil {
		return iwarp.RemoteBuffer{}, err
	}
	if err := wc[0].Err(); err != nil {
		if wc[0].Status == iwarp.StatusFlushed && e.qp.Err() == nil {
			return iwarp.RemoteBuffer{}, errLeft
		}
		return iwarp.RemoteBuffer{}, err
	}
	if wc[0].Len != infoLen {
		return iwarp.RemoteBuffer{}, fmt.Errorf("message of %d octets, want %d", wc[0].Len, infoLen)
	}
	at := e.slot(wc[0].ID)
	rb := parseInfo(e.msg[at : at+infoLen])
	return rb, e.post(wc[0].ID)
}
