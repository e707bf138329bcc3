package streamperf

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/stag"
)

// sendDepth is the depth of the send queues: work requests without a completion of their own leave them in groups.
const sendDepth = 64

// A talker is one end of a ping-pong of Sends.
type talker struct {
	cq   *iwarp.CQ
	qp   *iwarp.QP
	mem  []byte // of the receive
	recv []iwarp.RecvWR
	send []iwarp.SendWR
	wcs  [1]iwarp.WC
}

func newTalker(n side, size int) (t *talker, err error) {
	t = &talker{mem: make([]byte, size)}
	if t.cq, err = n.rnic.CreateCQ(sendDepth + 16); err != nil {
		return nil, err
	}
	mr, err := n.pd.RegisterMR(t.mem, stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	t.recv = []iwarp.RecvWR{{Local: []iwarp.SGE{mr.Slice(0, size)}}}
	t.send = []iwarp.SendWR{{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: t.mem}}
	return t, nil
}

// config returns the configuration of the talker's QP.
func (t *talker) config(n side, crc bool) *iwarp.QPConfig {
	return &iwarp.QPConfig{
		PD: n.pd, SendCQ: t.cq, RecvCQ: t.cq, SendDepth: sendDepth, RecvDepth: 1, MPA: mpaOf(crc),
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			t.qp = qp
			return qp.PostRecv(t.recv...)
		},
	}
}

// says sends the message.
func (t *talker) says() error { return t.qp.PostSend(t.send...) }

// hears waits for a message, and posts its receive again.
func (t *talker) hears() error {
	if _, err := t.cq.Wait(context.Background(), t.wcs[:]); err != nil { // a context that can end would cost an allocation
		return err
	}
	wc := &t.wcs[0]
	if err := wc.Err(); err != nil {
		return err
	}
	if wc.Op != iwarp.OpRecv || wc.Len != uint32(len(t.mem)) {
		return fmt.Errorf("completion of a %v of %d octets", wc.Op, wc.Len)
	}
	return t.qp.PostRecv(t.recv...)
}

// acceptSends answers each Send by a Send with the same octets.
func (v *service) acceptSends(ctx context.Context, n side, cr *iwarp.ConnRequest) error {
	t, err := newTalker(n, v.Size)
	if err != nil {
		return err
	}
	if _, err := cr.Accept(ctx, t.config(n, v.CRC)); err != nil {
		return err
	}
	for {
		if err := t.hears(); err != nil {
			return err
		}
		if err := t.says(); err != nil {
			return err
		}
	}
}

// sends opens such a service, and connects to it.
func (s *stand) sends(name string, what *service) (*contest.Contender, error) {
	n, addr, err := s.near(what)
	if err != nil {
		return nil, err
	}
	t, err := newTalker(n, what.Size)
	if err != nil {
		return nil, err
	}
	_, err = s.dial(n, addr, t.config(n, what.CRC))
	return &contest.Contender{Name: name, Size: what.Size, Run: t.turns}, err
}

// turns sends n messages, each when the one before it was answered.
func (t *talker) turns(n int) error {
	for range n {
		if err := t.says(); err != nil {
			return err
		}
		if err := t.hears(); err != nil {
			return err
		}
	}
	return nil
}
