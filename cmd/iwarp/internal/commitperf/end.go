package commitperf

import (
	"context"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

// An end is the client's end of a connection.
type end struct {
	at   welcome
	qp   *iwarp.QP
	data *iwarp.MR       // what is written
	wrs  [2]iwarp.SendWR // a push
	ask  [1]iwarp.SendWR // a pull: a message that says where data is
	read [1]iwarp.SendWR // an empty one
	wcs  [1]iwarp.WC
}

// connect makes a connection to slot i of the target.
func (c *cluster) connect(ctx context.Context, i int) (*end, error) {
	conn, err := peer.Dial(c.target.Addr, c.cc)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, peer.Timeout)
	defer stop()
	qp, err := c.rnic.Client(ctx, conn, &iwarp.QPConfig{PD: c.pd, Commit: negotiated(), PrivateData: greeting(i).append(nil)})
	if err != nil {
		return nil, err
	}
	e := &end{qp: qp}
	if err := e.at.parse(qp.PrivateData()); err != nil {
		return nil, err
	}
	if e.data, err = c.pd.RegisterMR(peer.SourceOf(slot), stag.RemoteRead, nil); err != nil {
		return nil, err
	}
	e.wrs = [2]iwarp.SendWR{
		{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{e.data.Slice(0, slot)}, Remote: e.at.to},
		{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{e.at.to}},
	}
	where, err := e.data.Advertise(0, slot).AppendBinary(nil)
	e.ask[0] = iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: where}
	e.read[0] = iwarp.SendWR{Op: iwarp.OpRDMARead}
	return e, err
}

// push writes the octets to the target and makes them durable.
func (e *end) push() error {
	if err := e.qp.PostSend(e.wrs[:]...); err != nil {
		return err
	}
	return e.wait(e.qp.SendCQ())
}

// pull makes the target fetch the octets and make them durable.
func (e *end) pull() error {
	if err := e.qp.PostRecv(iwarp.RecvWR{}); err != nil {
		return err
	}
	if err := e.qp.PostSend(e.ask[:]...); err != nil {
		return err
	}
	return e.wait(e.qp.RecvCQ())
}

func (e *end) emptyRead() error {
	if err := e.qp.PostSend(e.read[:]...); err != nil {
		return err
	}
	return e.wait(e.qp.SendCQ())
}

func (e *end) wait(cq *iwarp.CQ) error {
	if _, err := cq.Wait(context.Background(), e.wcs[:]); err != nil {
		return err
	}
	return e.wcs[0].Err()
}
