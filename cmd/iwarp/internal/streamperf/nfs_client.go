package streamperf

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

// A reader is a client of RPC over RDMA that calls READ as Linux does: each call enables a region for only its octets and names
// it as a Write chunk, and the reply invalidates it.
type reader struct {
	qp    *iwarp.QP
	cq    *iwarp.CQ
	slots []readSlot
	recvs []iwarp.RecvWR
	mem   []byte // of the receives
	sends []iwarp.SendWR
	again []iwarp.RecvWR
	xid   uint32
	rand  *rand.Rand
	wcs   [16]iwarp.WC
}

// A readSlot is the place of one call.
type readSlot struct {
	mr   *iwarp.MR
	mem  []byte
	stag stag.STag
	key  uint8
	xid  uint32
	call []byte
	wr   [2]iwarp.SendWR
}

const (
	inlineLen = 4096 // octets that both sides take in one message
	// Lengths of headers with a Write chunk of one segment: up to the segment, and in full.
	chunkAt   = 7 * 4
	headerLen = chunkAt + 16 + 2*4
)

// privateOfReader tells the server what it may send (RFC 8797).
func privateOfReader() []byte {
	const magic, version, invalidates, size = 0xf6ab0e18, 1, 1, inlineLen/1024 - 1
	return append(appendWords(nil, magic), version, invalidates, size, size)
}

// calls opens a service with a file, and connects to it.
func (s *stand) calls(name string, what *service) (*contest.Contender, error) {
	n, addr, err := s.near(what)
	if err != nil {
		return nil, err
	}
	r, err := newReader(n, what)
	if err != nil {
		return nil, err
	}
	d := what.Depth
	_, err = s.dial(n, addr, &iwarp.QPConfig{
		PD: n.pd, SendCQ: r.cq, RecvCQ: r.cq, SendDepth: 3*d + 8, RecvDepth: d, IRD: 16, ORD: -1,
		MPA: iwarp.MPAOptions{NoCRC: !what.CRC, ClientServer: true}, PrivateData: privateOfReader(),
		Setup: func(_ context.Context, qp *iwarp.QP) error { return r.setup(n, qp) },
	})
	return &contest.Contender{Name: name, Size: what.Size, Run: r.run}, err
}

func newReader(n side, what *service) (r *reader, err error) {
	r = &reader{mem: make([]byte, what.Depth*inlineLen), slots: make([]readSlot, what.Depth), rand: rand.New(rand.NewPCG(1, 2))}
	if r.cq, err = n.rnic.CreateCQ(4*what.Depth + 16); err != nil {
		return nil, err
	}
	mr, err := n.pd.RegisterMR(r.mem, stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	for i := range r.slots {
		r.slots[i].mem = peer.SourceOf(what.Size)
		r.recvs = append(r.recvs, iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{mr.Slice(i*inlineLen, inlineLen)}})
	}
	return r, nil
}

func (r *reader) setup(n side, qp *iwarp.QP) (err error) {
	const access = stag.LocalWrite | stag.RemoteWrite
	r.qp = qp
	for i := range r.slots {
		s := &r.slots[i]
		if s.mr, err = n.pd.AllocMR(len(s.mem), access, &iwarp.MROptions{QP: qp}); err != nil {
			return err
		}
		s.wr[0] = iwarp.SendWR{Op: iwarp.OpRegister, Flags: iwarp.Unsignaled, MR: s.mr, Memory: s.mem, Access: access, Key: &s.key}
	}
	return qp.PostRecv(r.recvs...)
}

// run keeps as many calls outstanding as the depth allows, until n are answered.
func (r *reader) run(n int) error {
	begun := min(n, len(r.slots))
	for i := range begun {
		if err := r.begin(i); err != nil {
			return err
		}
	}
	for done := 0; done < n; {
		if err := r.post(); err != nil {
			return err
		}
		k, err := r.cq.Wait(context.Background(), r.wcs[:]) // a context that can end would cost an allocation
		if err != nil {
			return err
		}
		for i := range r.wcs[:k] {
			slot, err := r.answered(&r.wcs[i])
			if err != nil {
				return err
			}
			if done++; begun < n {
				begun++
				if err := r.begin(slot); err != nil {
					return err
				}
			}
		}
	}
	return r.post()
}

// begin adds a call to what is posted next.
func (r *reader) begin(i int) (err error) {
	s := &r.slots[i]
	if s.key, err = s.mr.NextKey(); err != nil {
		return err
	}
	r.xid++
	s.xid = r.xid
	s.stag = s.mr.STag()&^0xff | stag.STag(s.key)
	size := uint32(len(s.mem))
	const version, credits, message, none, one = 1, 32, 0, 0, 1
	b := appendWords(s.call[:0], s.xid, version, credits, message, none, one, one, uint32(s.stag), size, 0, 0, none, none)
	s.call = appendReadCall(b, s.xid, uint64(r.rand.IntN(fileSize/len(s.mem)))*uint64(size), size)
	s.wr[1] = iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: s.call}
	r.sends = append(r.sends, s.wr[:]...)
	return nil
}

// post posts what begin and answered have collected.
func (r *reader) post() error {
	if len(r.again) > 0 {
		if err := r.qp.PostRecv(r.again...); err != nil {
			return err
		}
	}
	if len(r.sends) > 0 {
		if err := r.qp.PostSend(r.sends...); err != nil {
			return err
		}
	}
	r.again, r.sends = r.again[:0], r.sends[:0]
	return nil
}

// answered takes a reply, and returns the slot that is free.
func (r *reader) answered(wc *iwarp.WC) (int, error) {
	if err := wc.Err(); err != nil {
		return 0, err
	}
	msg := r.mem[wc.ID*inlineLen:][:wc.Len]
	if wc.Op != iwarp.OpRecv || len(msg) < headerLen {
		return 0, fmt.Errorf("completion of a %v of %d octets", wc.Op, wc.Len)
	}
	xid := binary.BigEndian.Uint32(msg)
	for i := range r.slots {
		s := &r.slots[i]
		if s.xid != xid || wc.STag != s.stag {
			continue
		}
		if n := binary.BigEndian.Uint32(msg[chunkAt+4:]); n != uint32(len(s.mem)) {
			return 0, fmt.Errorf("a READ of %d octets got %d", len(s.mem), n)
		}
		r.again = append(r.again, r.recvs[wc.ID])
		return i, nil
	}
	return 0, fmt.Errorf("a reply to call %d that invalidates %v", xid, wc.STag)
}
