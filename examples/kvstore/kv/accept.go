package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/stag"
)

// authorize grants a tenant reads of its own region, and nothing else.
func authorize(peer iwarp.Peer, region uint64, ops rma.Ops) rma.Ops {
	if peer.Kind != cm.KindDerived || regionOf(peer.Name) != region {
		return 0
	}
	return ops & rma.MayRead
}

// judge decides whether a client may use the replica for its purpose.
func (r *Replica) judge(peer iwarp.Peer, private []byte) error {
	if _, rest, ok := commit.CutOffer(private); ok {
		private = rest
	}
	u, err := useOf(private)
	if err != nil {
		return err
	}
	switch {
	case peer.Kind != cm.KindDerived:
		return errPeer
	case u == useReplicate:
		if peer.Name != replicatorName || r.primary() {
			return fmt.Errorf("%w: %q wants to write the log", errPeer, peer.Name)
		}
		return nil
	case r.tables[regionOf(peer.Name)] == nil:
		return fmt.Errorf("%w: %q is no tenant", errPeer, peer.Name)
	case u == useChanges && !r.primary():
		return fmt.Errorf("%w: this is the backup", errPeer)
	case u == usePlain && !r.cfg.Plain:
		return fmt.Errorf("%w: RDMA Reads without keys are not allowed", errPeer)
	case u != useGets && u != useChanges && u != usePlain:
		return fmt.Errorf("kv: %q is no use of a connection", byte(u))
	}
	return nil
}

// dial connects to a replica. If the replica rejects the connection, the error contains its reason.
func dial(ctx context.Context, rnic *iwarp.RNIC, network, addr string, cfg *iwarp.QPConfig) (*iwarp.QP, error) {
	qp, err := rnic.Dial(ctx, network, addr, cfg)
	if r, ok := errors.AsType[*iwarp.RejectError](err); ok && len(r.PrivateData) > 0 {
		return nil, fmt.Errorf("%w: %q", err, r.PrivateData)
	}
	return qp, err
}

// accept serves one connection.
func (r *Replica) accept(ctx context.Context, cr *iwarp.ConnRequest) {
	peer, _ := cr.Peer()
	u, err := useOf(cr.PrivateData())
	if err != nil {
		_ = cr.Reject(nil)
		return
	}
	if u != useReplicate && !r.serving() {
		_ = cr.Reject([]byte("the replica does not serve yet"))
		return
	}
	if !r.enter() {
		return // a request that was not answered is rejected
	}
	defer r.conns.Done()
	t := r.tables[regionOf(peer.Name)]
	switch u {
	case useGets:
		err = r.serveGets(ctx, cr, t)
	case useChanges:
		err = r.serveChanges(ctx, cr, t)
	case usePlain:
		err = r.servePlain(ctx, cr, t)
	case useReplicate:
		err = r.serveReplication(ctx, cr)
	}
	if err != nil && ctx.Err() == nil {
		r.cfg.Logger.Info("a connection has ended", "use", string(u), "peer", string(bytes.TrimRight(peer.Name[:], "\x00")), "err", err)
	}
}

// enter counts a connection, unless the replica is being closed.
func (r *Replica) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.conns.Add(1)
	}
	return !r.closed
}

// serveGets serves operations on the regions.
func (r *Replica) serveGets(ctx context.Context, cr *iwarp.ConnRequest, t *table) error {
	cfg := iwarp.QPConfig{PD: r.pd, PrivateData: t.shape.append(nil)}
	if err := rma.Prepare(r.rnic, &cfg, r.cfg.Depth, 0); err != nil {
		return err
	}
	qp, err := cr.Accept(ctx, &cfg)
	if err != nil {
		return errors.Join(err, cfg.SendCQ.Close())
	}
	return r.server.Serve(ctx, qp)
}

// A loan is the memory of a tenant for RDMA Reads, which Rekey and Authorize do not stop. It has its own
// PD, so that no other tenant can name it.
type loan struct {
	pd *iwarp.PD
	mr *iwarp.MR
}

func (r *Replica) lend(t *table) (l loan, err error) {
	if l.pd, err = r.rnic.AllocPD(); err != nil {
		return l, err
	}
	if r.cfg.Frozen {
		l.mr, err = l.pd.RegisterMR(t.octets, stag.RemoteRead, nil)
	} else {
		l.mr, err = l.pd.RegisterBuffer(t.memory, stag.RemoteRead, nil)
	}
	return l, err
}

// servePlain tells the client where the memory of its tenant is. Nothing else remains to be done.
func (r *Replica) servePlain(ctx context.Context, cr *iwarp.ConnRequest, t *table) error {
	l := r.plain[t.id]
	private, err := l.mr.Advertise(0, bucketLen).AppendBinary(nil)
	if err != nil {
		return err
	}
	_, err = cr.Accept(ctx, &iwarp.QPConfig{
		PD: l.pd, PrivateData: t.shape.append(private), IRD: r.cfg.Depth, MPA: iwarp.MPAOptions{NoCRC: true},
	})
	return err
}
