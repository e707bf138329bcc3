package ddp

import "github.com/goiwarp/iwarp/transport"

// A segment is one parsed segment: t or u, and the payload.
type segment struct {
	tagged  bool
	t       TaggedHeader
	u       UntaggedHeader
	q       *untaggedQueue // of u.QN, when the segment has been placed or is to be delivered
	n       int            // octets of payload
	payload []byte         // nil when the segment is placed and waits for its turn
}

func (g *segment) last() bool {
	if g.tagged {
		return g.t.Last
	}
	return g.u.Last
}

// parse reads a segment's header and checks its version.
func (g *segment) parse(b []byte) (err error) {
	g.tagged = IsTagged(b)
	wrongVersion := transport.DDPUntaggedVersion
	if g.tagged {
		wrongVersion = transport.DDPTaggedVersion
		err = g.t.parse(b)
	} else {
		err = g.u.parse(b)
	}
	if err != nil {
		return err
	}
	if v := Version(b); v != version {
		return transport.Faultf(wrongVersion, "version %d", v)
	}
	g.payload = b[headerLen(g.tagged):]
	g.n = len(g.payload)
	return nil
}
