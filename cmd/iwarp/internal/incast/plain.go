package incast

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// A verbs is the way in which RDMA Writes or RDMA Reads carry the data.
type verbs struct {
	*scene
	window *iwarp.Solicitor // nil: the hosts write
	sink   *iwarp.MR
	source *iwarp.MR
}

// A peer is a connection between the receiver and a host.
type peer struct {
	near, far *iwarp.QP
	to        iwarp.RemoteBuffer // the receiver's memory for the host
	from      iwarp.RemoteBuffer // the host's
	first     int                // where the memory for the host begins in the sink
}

// unsolicited is the way in which hosts write at any time.
func unsolicited(ctx context.Context, s *scene) error { return (&verbs{scene: s}).open(ctx) }

// solicited is the way in which the receiver reads under a Solicitor.
func solicited(ctx context.Context, s *scene) error {
	v := &verbs{scene: s, window: iwarp.NewSolicitor(solicit.Config{Fixed: s.opts.window})}
	s.granted = func() int64 { return v.window.Stats().MaxGranted }
	s.release = v.window.Close
	return v.open(ctx)
}

// open connects all hosts.
func (v *verbs) open(ctx context.Context) (err error) {
	if v.sink, err = v.receiver.pd.RegisterMR(v.came, stag.LocalWrite|stag.RemoteWrite, nil); err != nil {
		return err
	}
	if v.source, err = v.hosts.pd.RegisterMR(v.have, stag.RemoteRead, nil); err != nil {
		return err
	}
	transfer := v.write
	if v.window != nil {
		transfer = v.read
	}
	for i := range v.opts.peers {
		p, err := v.connect(ctx)
		if err != nil {
			return err
		}
		n := v.opts.size
		p.first, p.to, p.from = i*n, v.sink.Advertise(i*n, n), v.source.Advertise(0, n)
		v.transfers = append(v.transfers, func(ctx context.Context) error { return transfer(ctx, p) })
	}
	return v.openVictim(ctx)
}

// connect connects a host. The receiver is the initiator.
func (v *verbs) connect(ctx context.Context) (*peer, error) {
	near, far := v.link.Pair()
	p := new(peer)
	accepted := make(chan error, 1)
	go func() {
		cr, err := v.hosts.rnic.Server(ctx, far, nil)
		if err == nil {
			p.far, err = cr.Accept(ctx, &iwarp.QPConfig{PD: v.hosts.pd})
		}
		accepted <- err
	}()
	var err error
	p.near, err = v.receiver.rnic.Client(ctx, near, &iwarp.QPConfig{PD: v.receiver.pd, Solicitor: v.window})
	return p, errors.Join(err, <-accepted)
}

// openVictim connects a host that sends nothing by itself.
func (v *verbs) openVictim(ctx context.Context) error {
	p, err := v.connect(ctx)
	if err != nil {
		return err
	}
	source, err := v.hosts.pd.RegisterMR(make([]byte, victimSize), stag.RemoteRead, nil)
	if err != nil {
		return err
	}
	sink, err := v.receiver.pd.RegisterMR(make([]byte, victimSize), stag.LocalWrite, nil)
	if err != nil {
		return err
	}
	wr := iwarp.SendWR{
		Op: iwarp.OpRDMARead, Class: solicit.Latency,
		Local: []iwarp.SGE{sink.Slice(0, victimSize)}, Remote: source.Advertise(0, victimSize),
	}
	v.victim = func(ctx context.Context) error { return do(ctx, p.near, wr) }
	return nil
}

// write makes the host write all its data, and waits until they have arrived.
func (v *verbs) write(ctx context.Context, p *peer) error {
	for at := 0; at < v.opts.size; at += piece {
		to := p.to
		to.TO += uint64(at)
		to.Len = piece
		if err := p.far.RDMAWrite(ctx, to, v.source.Slice(at, piece)); err != nil {
			return err
		}
	}
	return p.far.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{STag: p.to.STag, TO: p.to.TO}) // completes after the Writes
}

// read makes the receiver read all data of the host.
func (v *verbs) read(ctx context.Context, p *peer) error {
	for at := 0; at < v.opts.size; at += piece {
		from := p.from
		from.TO += uint64(at)
		from.Len = piece
		wr := iwarp.SendWR{Op: iwarp.OpRDMARead, Class: solicit.Bulk, Local: []iwarp.SGE{v.sink.Slice(p.first+at, piece)}, Remote: from}
		if err := do(ctx, p.near, wr); err != nil {
			return err
		}
	}
	return nil
}

// do waits for the completion of a work request. No other is on the QP.
func do(ctx context.Context, qp *iwarp.QP, wr iwarp.SendWR) error {
	if err := qp.PostSend(wr); err != nil {
		return err
	}
	var wcs [1]iwarp.WC
	if _, err := qp.SendCQ().Wait(ctx, wcs[:]); err != nil {
		return err
	}
	return wcs[0].Err()
}
