package rpc

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
	"github.com/goiwarp/iwarp/stag"
)

// A Client is the client's end of a connection. Its methods are for one goroutine.
type Client struct {
	shape Shape
	qp    *iwarp.QP
	cq    *iwarp.CQ
	slots []slot
	rand  *rand.Rand

	recvs []iwarp.RecvWR // one for each slot
	sends []iwarp.SendWR // to post next
	again []iwarp.RecvWR // likewise
	heads []byte         // of PutInside: the beginning of its Sends
	mem   []byte         // of the receives
	wcs   [batch]iwarp.WC
}

// A slot is the place of one operation.
type slot struct {
	mr   *iwarp.MR
	mem  []byte
	stag stag.STag // of the outstanding operation
	key  uint8
	head [requestLen]byte
	wr   [2]iwarp.SendWR

	inside [][]iwarp.SGE // of PutInside: requests with their octets
}

// NewClient makes a client. The caller makes its QP from Config.
func NewClient(r *iwarp.RNIC, pd *iwarp.PD, shape Shape, source func(n int) []byte) (*Client, error) {
	c := &Client{shape: shape, slots: make([]slot, shape.Depth), rand: rand.New(rand.NewPCG(1, 2))}
	var err error
	if c.cq, err = r.CreateCQ(4*shape.Depth + 16); err != nil {
		return nil, err
	}
	c.mem, c.heads = make([]byte, shape.Depth*responseLen), make([]byte, shape.Depth*c.variants()*requestLen)
	mr, err := pd.RegisterMR(c.mem, stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	heads, err := pd.RegisterMR(c.heads, 0, nil)
	if err != nil {
		return nil, err
	}
	for i := range c.slots {
		c.recvs = append(c.recvs, iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{mr.Slice(i*responseLen, responseLen)}})
		s := &c.slots[i]
		s.mem = source(shape.Size)
		if shape.Kind != PutInside {
			continue
		}
		data, err := pd.RegisterMR(s.mem, 0, nil)
		if err != nil {
			return nil, err
		}
		s.inside = c.inside(i, heads, data)
	}
	return c, nil
}

// variants returns how many requests of PutInside a slot has. They are made in advance and do not change, so it does not matter
// that a Send may complete after its response has come.
func (c *Client) variants() int { return min(max(8192/c.shape.Depth, 1), c.shape.places()) }

// inside makes the requests of PutInside of a slot.
func (c *Client) inside(slot int, heads, data *iwarp.MR) (all [][]iwarp.SGE) {
	for k := range c.variants() {
		at := (slot*c.variants() + k) * requestLen
		(&request{slot: uint32(slot), offset: c.place()}).put(c.heads[at:])
		all = append(all, []iwarp.SGE{heads.Slice(at, requestLen), data.Slice(0, c.shape.Size)})
	}
	return all
}

// place returns the offset at which an operation works.
func (c *Client) place() uint64 { return uint64(c.rand.IntN(c.shape.places()) * c.shape.Size) }

// Config returns the configuration of the QP, except for how it is connected.
func (c *Client) Config(pd *iwarp.PD) *iwarp.QPConfig {
	d := c.shape.Depth
	return &iwarp.QPConfig{
		PD: pd, SendCQ: c.cq, RecvCQ: c.cq, SendDepth: 3*d + 8, RecvDepth: d,
		IRD: d, ORD: -1, MPA: c.shape.mpa(), PrivateData: []byte(c.shape.Kind),
		Setup: func(_ context.Context, qp *iwarp.QP) error { return c.setup(pd, qp) },
	}
}

func (c *Client) setup(pd *iwarp.PD, qp *iwarp.QP) (err error) {
	c.qp = qp
	access := stag.LocalWrite | stag.RemoteWrite
	if c.shape.Kind == Put {
		access = stag.RemoteRead
	}
	for i := range c.slots {
		s := &c.slots[i]
		if c.shape.Kind == PutInside {
			break
		}
		if s.mr, err = pd.AllocMR(c.shape.Size, access, &iwarp.MROptions{QP: qp}); err != nil {
			return err
		}
		s.wr = [2]iwarp.SendWR{
			{Op: iwarp.OpRegister, Flags: iwarp.Unsignaled, MR: s.mr, Memory: s.mem, Access: access, Key: &s.key},
			{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: s.head[:]},
		}
	}
	return qp.PostRecv(c.recvs...)
}

// Run keeps as many operations outstanding as the Shape allows, until n are done.
func (c *Client) Run(n int) error {
	begun := min(n, len(c.slots))
	for i := range begun {
		if err := c.begin(i); err != nil {
			return err
		}
	}
	for done := 0; done < n; {
		if err := c.post(); err != nil {
			return err
		}
		k, err := c.cq.Wait(context.Background(), c.wcs[:]) // a context that can end would cost an allocation
		if err != nil {
			return err
		}
		for i := range c.wcs[:k] {
			slot, err := c.ended(&c.wcs[i])
			if err != nil {
				return err
			}
			if done++; begun < n {
				begun++
				if err := c.begin(slot); err != nil {
					return err
				}
			}
		}
	}
	return c.post()
}

// Timed does n operations, one after the other, and appends the time that each took in nanoseconds.
func (c *Client) Timed(n int, times []int64) ([]int64, error) {
	return stats.Times(n, times, func(int) error { return c.Run(1) })
}

// begin adds an operation to what is posted next.
func (c *Client) begin(i int) (err error) {
	s := &c.slots[i]
	if c.shape.Kind == PutInside {
		local := s.inside[c.rand.IntN(len(s.inside))]
		c.sends = append(c.sends, iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: local})
		return nil
	}
	if s.key, err = s.mr.NextKey(); err != nil {
		return err
	}
	s.stag = s.mr.STag()&^0xff | stag.STag(s.key)
	q := request{slot: uint32(i), stag: s.stag, offset: c.place()}
	q.put(s.head[:])
	c.sends = append(c.sends, s.wr[0], s.wr[1])
	return nil
}

// post posts what begin and ended have collected.
func (c *Client) post() error {
	if len(c.again) > 0 {
		if err := c.qp.PostRecv(c.again...); err != nil {
			return err
		}
	}
	if len(c.sends) > 0 {
		if err := c.qp.PostSend(c.sends...); err != nil {
			return err
		}
	}
	c.again, c.sends = c.again[:0], c.sends[:0]
	return nil
}

// ended takes a response, and returns the slot that is free.
func (c *Client) ended(wc *iwarp.WC) (int, error) {
	if err := wc.Err(); err != nil {
		return 0, err
	}
	if wc.Op != iwarp.OpRecv || wc.Len != responseLen {
		return 0, fmt.Errorf("completion of a %v of %d octets", wc.Op, wc.Len)
	}
	i := binary.BigEndian.Uint32(c.mem[wc.ID*responseLen:])
	if i >= uint32(len(c.slots)) || wc.STag != c.slots[i].stag {
		return 0, fmt.Errorf("the response to operation %d has invalidated %v", i, wc.STag)
	}
	c.again = append(c.again, c.recvs[wc.ID])
	return int(i), nil
}
