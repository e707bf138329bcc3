package dump

import (
	"fmt"
	"strings"
	"time"
)

// A Printer formats records as lines.
type Printer struct{ start time.Time }

// Line formats a record as a line without line end: the packet, the seconds since the first record with a time (- for one without),
// the connection, > if the initiator sends and < for the other direction, and a description. Errors come last, each after a !.
func (p *Printer) Line(r *Record) string {
	if p.start.IsZero() {
		p.start = r.Time
	}
	var b strings.Builder
	since := "-"
	if !r.Time.IsZero() {
		since = fmt.Sprintf("%.6f", r.Time.Sub(p.start).Seconds())
	}
	fmt.Fprintf(&b, "%6d %10s ", r.Packet, since)
	if r.Kind == KindConnection {
		fmt.Fprintf(&b, "#%d = %s %s > %s", r.Conn, r.Text, r.Src, r.Dst)
		return b.String()
	}
	if r.Conn != 0 {
		fmt.Fprintf(&b, "#%d %s ", r.Conn, map[bool]string{false: ">", true: "<"}[r.Reverse])
	}
	b.WriteString(strings.Join(r.words(), ", "))
	for _, x := range r.Private {
		b.WriteString(" " + x.words())
	}
	if r.Message != nil {
		b.WriteString(" " + r.Message.words())
	}
	for _, e := range r.Errors {
		b.WriteString(" ! " + e)
	}
	return b.String()
}

// words describes the record.
func (r *Record) words() []string {
	var w []string
	switch r.Kind {
	case KindRequest:
		w = append(w, "MPA Request")
	case KindReply:
		w = append(w, "MPA Reply")
	case KindGap:
		w = append(w, fmt.Sprintf("%d octets %s", r.Octets, r.Text))
	case KindInit, KindEnd:
		w = append(w, r.Text)
	case KindError:
		w = append(w, "error")
	case KindConnection, KindFPDU, KindControl, KindSegment:
	}
	if r.Setup != nil {
		w = append(w, r.Setup.words(r.Kind)...)
	}
	if r.DDP != nil {
		w = append(w, r.RDMAP.Name+" "+r.DDP.words())
		w = append(w, r.RDMAP.words()...)
	} else if r.Kind == KindFPDU || r.Kind == KindSegment {
		w = append(w, "no DDP segment")
	}
	if r.MPA != nil {
		w = append(w, "CRC "+r.MPA.CRC)
		if r.MPA.Markers > 0 {
			w = append(w, fmt.Sprintf("Markers %d", r.MPA.Markers))
		}
	}
	if r.SCTP != nil {
		w = append(w, r.SCTP.words())
	}
	return w
}

func (s *Setup) words(k Kind) []string {
	var w []string
	if s.Function != "" {
		w = append(w, s.Function)
	} else {
		w = append(w, fmt.Sprintf("revision %d", s.Revision))
	}
	if s.Reject {
		w = append(w, "rejects")
	}
	if k != KindControl {
		w = append(w, "CRC "+yesNo(s.CRC), "Markers "+yesNo(s.Markers))
	}
	if s.Enhanced {
		w = append(w, "IRD "+depthWords(s.IRD), "ORD "+depthWords(s.ORD))
		if s.PeerToPeer {
			w = append(w, "peer-to-peer with RTR "+strings.Join(s.RTR, "|"))
		}
	}
	if s.Private > 0 {
		w = append(w, fmt.Sprintf("%d octets of private data", s.Private))
	}
	return w
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func depthWords(n *int) string {
	if n == nil {
		return "not negotiated"
	}
	return fmt.Sprint(*n)
}

func (d *DDP) words() string {
	part := "more follows"
	if d.Last {
		part = "last"
	}
	if d.Tagged {
		return fmt.Sprintf("STag %s TO %s, %d octets, %s", d.STag, *d.TO, d.Length, part)
	}
	return fmt.Sprintf("QN %d MSN %d MO %d, %d octets, %s", *d.QN, *d.MSN, *d.MO, d.Length, part)
}

func (m *RDMAP) words() []string {
	var w []string
	if m.Invalidate != "" {
		w = append(w, "invalidates STag "+string(m.Invalidate))
	}
	if t := m.Terminate; t != nil {
		w = append(w, t.words()...)
	}
	if len(m.Fields) > 0 {
		w = append(w, m.Fields.words())
	}
	return w
}

func (t *Terminate) words() []string {
	w := []string{t.Name + ", " + t.Section}
	if t.Swapped {
		w = append(w, "layer and type exchanged as Linux siw does")
	}
	if t.Segment != "" {
		w = append(w, "about "+t.Segment)
	}
	if t.Length != nil {
		w = append(w, fmt.Sprintf("a segment of %d octets", *t.Length))
	}
	return w
}

func (x *Block) words() string {
	w := x.Protocol + ": " + x.Message
	if len(x.Fields) > 0 {
		w += " " + x.Fields.words()
	}
	return "[" + w + "]"
}

func (f Fields) words() string {
	w := make([]string, len(f))
	for i, x := range f {
		w[i] = fmt.Sprintf("%s=%v", x.Name, x.Value)
	}
	return strings.Join(w, " ")
}
