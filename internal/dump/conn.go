package dump

import (
	"cmp"
	"container/list"
	"fmt"
	"net/netip"
	"slices"
)

// A conn is one TCP connection or SCTP session.
type conn struct {
	d              *Decoder
	number         int // 0: none of its records was emitted
	client, server netip.AddrPort
	key            key
	element        *list.Element
	overSCTP       bool
	ended          bool

	tcp  *[2]half         // of TCP: what the client and the server send
	seen [2]*transmission // of an SCTP association
	dirs [2]sequence
	ulp  ulp
}

// sortConns makes the order of reports deterministic.
func sortConns(all []*conn) {
	slices.SortFunc(all, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(a.number, b.number), a.client.Compare(b.client), a.server.Compare(b.server))
	})
}

// record appends a record for something that the client (0) or the server (1) sends.
func (c *conn) record(dir int, k Kind) *Record {
	if c.number == 0 {
		c.d.last++
		c.number = c.d.last
		r := c.fill(c.d.report(KindConnection), 0)
		r.Text = "TCP"
		switch {
		case c.key.stream >= 0:
			r.Text = fmt.Sprintf("SCTP stream %d", c.key.stream)
		case c.overSCTP:
			r.Text = "SCTP association"
		}
	}
	return c.fill(c.d.report(k), dir)
}

func (c *conn) fill(r *Record, dir int) *Record {
	src, dst := c.client, c.server
	if dir == 1 {
		src, dst = dst, src
	}
	r.Conn, r.Src, r.Dst, r.Reverse = c.number, src.String(), dst.String(), dir == 1
	return r
}

// lose records that octets are missing, so that the next messages are out of sequence.
func (c *conn) lose(dir int) {
	c.dirs[dir] = sequence{broken: true}
	c.ulp.lose(dir)
}
