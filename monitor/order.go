package monitor

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A Column is the key by which Rows are sorted. Numbers are in descending order, IDs in ascending order, and texts in alphabetical
// order. Addresses are in the order of their numbers.
type Column string

// The columns.
const (
	ByRate             Column = "rate" // octets in both directions, and then messages
	ByID               Column = "id"
	ByRemote           Column = "remote"
	ByLocal            Column = "local"
	ByPeer             Column = "peer"
	ByPath             Column = "path"
	ByState            Column = "state"
	BySent             Column = "sent"              // octets in a second
	ByReceived         Column = "received"          // octets in a second
	BySentMessages     Column = "sent_messages"     // in a second
	ByReceivedMessages Column = "received_messages" // in a second
	BySendQueue        Column = "send_queue"
	ByRecvQueue        Column = "recv_queue"
	ByRTT              Column = "rtt"
	ByRetransmits      Column = "retransmits" // by those since the State before, and then by all
	ByWaits            Column = "waits"       // receive waits, likewise
)

// orders compare two Rows by each Column.
var orders = map[Column]func(a, b *Row) int{
	ByRate: func(a, b *Row) int {
		return cmp.Or(
			cmp.Compare(b.SentRate.Octets+b.ReceivedRate.Octets, a.SentRate.Octets+a.ReceivedRate.Octets),
			cmp.Compare(b.SentRate.Messages+b.ReceivedRate.Messages, a.SentRate.Messages+a.ReceivedRate.Messages))
	},
	ByID:               func(a, b *Row) int { return cmp.Compare(a.ID, b.ID) },
	ByRemote:           func(a, b *Row) int { return compareAddresses(a.Remote, b.Remote) },
	ByLocal:            func(a, b *Row) int { return compareAddresses(a.Local, b.Local) },
	ByPeer:             func(a, b *Row) int { return cmp.Compare(a.PeerText(), b.PeerText()) },
	ByPath:             func(a, b *Row) int { return cmp.Compare(a.Path, b.Path) },
	ByState:            func(a, b *Row) int { return cmp.Compare(a.State, b.State) },
	BySent:             func(a, b *Row) int { return cmp.Compare(b.SentRate.Octets, a.SentRate.Octets) },
	ByReceived:         func(a, b *Row) int { return cmp.Compare(b.ReceivedRate.Octets, a.ReceivedRate.Octets) },
	BySentMessages:     func(a, b *Row) int { return cmp.Compare(b.SentRate.Messages, a.SentRate.Messages) },
	ByReceivedMessages: func(a, b *Row) int { return cmp.Compare(b.ReceivedRate.Messages, a.ReceivedRate.Messages) },
	BySendQueue:        func(a, b *Row) int { return cmp.Compare(b.SendQueued, a.SendQueued) },
	ByRecvQueue:        func(a, b *Row) int { return cmp.Compare(b.RecvQueued, a.RecvQueued) },
	ByRTT:              func(a, b *Row) int { return cmp.Compare(b.rtt(), a.rtt()) },
	ByRetransmits: func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.Retransmits.New, a.Retransmits.New), cmp.Compare(b.Retransmits.Total, a.Retransmits.Total))
	},
	ByWaits: func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.Waits.New, a.Waits.New), cmp.Compare(b.Waits.Total, a.Waits.Total))
	},
}

// Known reports whether the column exists.
func (c Column) Known() bool { return orders[c] != nil }

// arrange brings the Rows into the form of the Options.
func arrange(v *View, o *Options) {
	words := strings.Fields(strings.ToLower(o.Filter))
	v.Rows = slices.DeleteFunc(v.Rows, func(r Row) bool { return !r.has(words) })
	v.Matched = len(v.Rows)
	order := orders[o.Sort]
	if order == nil {
		order = orders[ByRate]
	}
	slices.SortFunc(v.Rows, func(a, b Row) int {
		n := order(&a, &b)
		if o.Reverse {
			n = -n
		}
		return cmp.Or(n, cmp.Compare(a.RNIC, b.RNIC), cmp.Compare(a.ID, b.ID))
	})
	if o.Limit > 0 && len(v.Rows) > o.Limit {
		v.Rows = slices.Clip(v.Rows[:o.Limit])
	}
}

// has reports whether each of the words is in one of the texts of the QP.
func (r *Row) has(words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{r.Remote, r.Local, r.PeerText(), r.Path, r.Network, r.State}, "\n"))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// PeerText describes the peer in one line: its group and name, or else its ID. It is empty if the peer was not authenticated.
func (q *QP) PeerText() string {
	switch {
	case q.Peer == nil:
		return ""
	case q.Peer.Name == "":
		return q.Peer.ID
	case q.Peer.Group == "":
		return q.Peer.Name
	}
	return q.Peer.Group + "/" + q.Peer.Name
}

func (q *QP) rtt() time.Duration {
	if q.TCP == nil {
		return 0
	}
	return q.TCP.RTT
}

// compareAddresses compares addresses as numbers. Texts that are not addresses come first.
func compareAddresses(a, b string) int {
	x, _ := netip.ParseAddrPort(a)
	y, _ := netip.ParseAddrPort(b)
	return cmp.Or(x.Compare(y), cmp.Compare(a, b))
}
