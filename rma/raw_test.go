package rma

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A raw is a peer whose part the test plays, message by message: the client, which is the initiator, or the
// server.
type raw struct {
	testing.TB
	qp      *iwarp.QP
	pd      *iwarp.PD
	out, in *regionkey.Control
	secret  regionkey.Key
	suite   uint8
	ctr     uint64 // of the next message
	want    uint64
	hello   wire.Hello // of the server
	mine    wire.Hello
	mr      *iwarp.MR
	mem     []byte
	rep     wire.OpenRep // of a client
	ring    *regionkey.Ring
}

// newRaw makes a peer for the server of a pair.
func newRaw(w *pair) *raw {
	w.Helper()
	return w.raw(w.qps[0], w.plan.client.PD, regionkey.Initiator)
}

func (w *pair) raw(qp *iwarp.QP, pd *iwarp.PD, side uint8) *raw {
	w.Helper()
	r := &raw{TB: w.TB, qp: qp, pd: pd}
	r.mine = wire.Hello{
		Offered: 1, Chosen: wire.NoSuite, MaxOp: 4096, Depth: 0,
		PullTimeout: 500 * time.Millisecond, Guard: 100 * time.Millisecond, Linger: 250 * time.Millisecond, Instance: [16]byte{1, 2, 3},
	}
	if !w.plan.plain {
		r.mine.Offered = 6
		var err error
		r.out, err = regionkey.NewControl(r.qp.Export, side)
		require.NoError(w, err)
		r.in, err = regionkey.NewControl(r.qp.Export, 3-side)
		require.NoError(w, err)
		r.secret, err = regionkey.BindingSecret(r.qp.Export)
		require.NoError(w, err)
	}
	r.mem = make([]byte, 1<<16)
	var err error
	r.mr, err = r.pd.RegisterMR(r.mem, stag.LocalWrite, nil)
	require.NoError(w, err)
	return r
}

// header returns the header of the next message.
func (r *raw) header(id op.ID) wire.Header {
	r.ctr++
	return wire.Header{Ctr: r.ctr - 1, Op: id}
}

// sends sends octets as a message.
func (r *raw) sends(msg []byte) {
	r.Helper()
	copy(r.mem, msg)
	_ = r.qp.Send(r.context(), r.mr.Slice(0, len(msg))) // the server may have ended the connection
}

func (r *raw) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	r.Cleanup(cancel)
	return ctx
}

// receives returns the next message, which must be of that type.
func (r *raw) receives(t wire.Type) []byte {
	r.Helper()
	msg, _, err := r.next()
	require.NoError(r, err)
	require.Equal(r, t, wire.Type(msg[1]), "the type of the message")
	return msg
}

// next returns the next message, and the STag that it has invalidated.
func (r *raw) next() ([]byte, stag.STag, error) {
	wc, err := r.qp.RecvWC(r.context(), r.mr.Slice(1024, 256))
	if err != nil {
		return nil, 0, err
	}
	msg := append([]byte(nil), r.mem[1024:1024+wc.Len]...)
	if _, err = wire.Open(msg, r.want, r.in); err != nil {
		return nil, 0, err
	}
	r.want++
	return msg, wc.STag, nil
}

// greets exchanges HELLOs.
func (r *raw) greets() {
	r.Helper()
	r.sends(r.mine.Append(nil, r.header(0), r.out))
	require.NoError(r, r.hello.Parse(r.receives(wire.TypeHello)))
	r.suite = uint8(r.hello.Chosen)
	if r.suite == 0 {
		r.in, r.out = nil, nil
	}
}

// opens opens a region.
func (r *raw) opens(id op.ID, region uint64, ops wire.Ops) {
	r.Helper()
	q := wire.OpenReq{Region: region, Instance: r.mine.Instance, Ops: ops}
	r.sends(q.Append(nil, r.header(id), r.out))
	require.NoError(r, r.rep.Parse(r.receives(wire.TypeOpenRep)))
}

// sealer makes what seals for an operation.
func (r *raw) sealer(t regionkey.OpType, dir uint8) *regionkey.Sealer {
	r.Helper()
	if r.suite == 0 {
		return nil
	}
	b := regionkey.Binding{Secret: r.secret, Owner: regionkey.Responder, Dir: dir, Suite: r.suite}
	s, err := regionkey.Traffic(r.rep.Key(t), &b)
	require.NoError(r, err)
	return s
}

// wantStatus receives a STATUS.
func (r *raw) wantStatus(code op.Outcome, reason op.Reason) (m wire.Status) {
	r.Helper()
	require.NoError(r, m.Parse(r.receives(wire.TypeStatus)))
	require.Equal(r, [2]uint16{uint16(code), uint16(reason)}, [2]uint16{uint16(m.Code), uint16(m.Reason)}, "the code and the reason")
	return m
}

// wantEnd requires that the server has ended the connection.
func (r *raw) wantEnd(w *pair, text string) {
	r.Helper()
	for {
		if _, _, err := r.next(); err != nil {
			break
		}
	}
	err := <-w.served
	w.served = nil
	require.ErrorContains(r, err, text)
}

// wantNothingLeft requires that nothing of the connection is left in the server's PD.
func (w *pair) wantNothingLeft() {
	w.Helper()
	<-w.qps[1].Done()
	require.NoError(w, w.plan.server.PD.Close())
	require.Zero(w, w.server.scratch.used(), "no memory for what was under way")
	require.Zero(w, w.server.solicitor.Stats().Granted, "no grant")
	require.Zero(w, w.server.queue, "no place in the queue")
}
