package ddp

import "github.com/goiwarp/iwarp/transport"

// A segment is one parsed segment: t or u, and the payload.
type segment struct {
	tagged  bool
	t       TaggedHeader
	u       UntaggedHeader
	n       int    // octets of payload
	payload []byte // gone once the segment is placed and waits for its turn
}

func (g *segment) last() bool {
	if g.tagged {
		return g.t.Last
	}
	return g.u.Last
}

// parse reads a segment's header and checks its version.
func parse(b []byte) (g segment, err error) {
	g.tagged = IsTagged(b)
	wrongVersion := transport.DDPUntaggedVersion
	if g.tagged {
		wrongVersion = transport.DDPTaggedVersion
		g.t, err = ParseTagged(b)
	} else {
		g.u, err = ParseUntagged(b)
	}
	if err != nil {
		return g, err
	}
	if v := Version(b); v != version {
		return g, transport.Faultf(wrongVersion, "version %d", v)
	}
	g.payload = b[headerLen(g.tagged):]
	g.n = len(g.payload)
	return g, nil
}
