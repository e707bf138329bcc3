package monitor

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"time"
	"weak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/counters"
)

// started is slightly later than the start of the process.
var started = time.Now()

// thisProcess is the Process of all States of this process.
var thisProcess = func() Process {
	p := Process{PID: os.Getpid(), Started: started.UTC().Round(0)}
	if exe, err := os.Executable(); err == nil {
		p.Program = filepath.Base(exe)
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		p.Version = b.Main.Version
	}
	p.Host, _ = os.Hostname() // without one the page shows the address in the browser
	return p
}()

// A card is an RNIC with the IDs of its QPs.
type card struct {
	id   int
	rnic *iwarp.RNIC
	ids  map[weak.Pointer[iwarp.QP]]uint64 // of QPs that were established at the last snapshot
}

// names assigns IDs to QPs.
type names struct{ last uint64 }

// snapshot queries the RNICs and all of their QPs.
func snapshot(cards []*card, n *names) *State {
	s := &State{Process: thisProcess, RNICs: make([]RNIC, 0, len(cards))}
	for _, c := range cards {
		s.RNICs = append(s.RNICs, c.snapshot(n))
	}
	now := time.Now()
	s.Time, s.Uptime = now.UTC(), now.Sub(started)
	return s
}

func (c *card) snapshot(n *names) RNIC {
	r := RNIC{ID: c.id, RNIC: *c.rnic.Stats(), QPs: make([]QP, 0, len(c.ids))}
	if r.Paths == nil {
		r.Paths = []counters.Path{}
	}
	if r.Terminates == nil {
		r.Terminates = []counters.Terminate{}
	}
	ids := make(map[weak.Pointer[iwarp.QP]]uint64, len(c.ids))
	for qp := range c.rnic.QPs() {
		key := weak.Make(qp)
		id, known := c.ids[key]
		if !known {
			n.last++
			id = n.last
		}
		ids[key] = id
		r.QPs = append(r.QPs, ofQP(id, qp))
	}
	c.ids = ids
	slices.SortFunc(r.QPs, func(a, b QP) int { return cmp.Compare(a.ID, b.ID) })
	return r
}

// ofQP queries one QP.
func ofQP(id uint64, qp *iwarp.QP) QP {
	q := QP{ID: id, State: qp.State().String(), QP: qp.Stats()}
	q.Local, _ = address(qp.LocalAddr())
	q.Remote, q.Network = address(qp.RemoteAddr())
	if p, ok := qp.Peer(); ok {
		q.Peer = &Peer{ID: hex.EncodeToString(p.ID[:]), Kind: p.Kind, Group: printable(p.Group), Name: nameOf(&p)}
	}
	if t, ok := qp.TCP(); ok {
		q.TCP = &t
	}
	return q
}

// nameOf returns the name of a peer as text; a name may be a digest, which is not text.
func nameOf(p *iwarp.Peer) string {
	if p.Kind == iwarp.PeerCertificate {
		return hex.EncodeToString(p.Name[:])
	}
	return printable(string(bytes.TrimRight(p.Name[:], "\x00")))
}

func address(a net.Addr) (text, network string) {
	if a == nil {
		return "", ""
	}
	return printable(a.String()), printable(a.Network())
}

// printable returns a text that may come from a peer, with everything except printable ASCII escaped.
func printable(text string) string {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			quoted := strconv.QuoteToASCII(text)
			return quoted[1 : len(quoted)-1]
		}
	}
	return text
}
