package iwarp

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/authn"
	"github.com/goiwarp/iwarp/internal/lockorder"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/internal/quota"
	"github.com/goiwarp/iwarp/internal/slots"
	"github.com/goiwarp/iwarp/internal/soliciting"
	"github.com/goiwarp/iwarp/internal/tally"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// A QP is a queue pair and its connection, which in iWARP are one: the QP is in
// StateRTS from the moment MPA start-up ends. It is made by [RNIC.Dial],
// [RNIC.Client] or [ConnRequest.Accept] and serves one connection.
type QP struct {
	rnic *RNIC
	id   uint64 // the stream identity of stag.Scope

	peerExtensions atomic.Uint32 // of SetPeerExtensions; next to id it needs no padding

	cfg    QPConfig
	window *soliciting.User // nil: without a Solicitor
	sendCQ *CQ
	recvCQ *CQ
	rq     recvQueue

	reserved struct{ send, recv int } // entries of the CQs, see CQ

	sent     completionBatch // guarded by the stream's lock
	received completionBatch // the receiving goroutine's

	// Set before conn is; until then no other goroutine accesses them.
	stream *rdmap.Stream
	llp    transport.LLP
	terms  *mpa.Terms

	latencies *tally.Latencies // nil: not measured

	identity *authn.Identity[Peer] // nil: there is neither an Authenticator nor TLS

	conn                 atomic.Pointer[qpconn.Conn] // nil: the QP is not connected; set once, under mu
	commits              commits
	sendSlots, recvSlots slots.Count
	staller              slots.Staller // resumes conn
	shared               sharing
	// overflow: a completion was lost. The goroutine that finds that checks overflow before it
	// gives up its right to receive or to send; without such a right it has posted, and sends next.
	overflow atomic.Bool

	done   chan struct{}   // closed when everything has ended
	drains slots.Broadcast // sent when send work requests have completed

	mu        lockorder.Mutex[lockorder.QP]
	early     []rdmap.Request // posted while not connected
	err       error           // the first cause of the end
	term      *TerminateError // sent or received
	fenceTold bool            // work that waits was logged, or will be: see tellFenced

	retransmits uint32 // of the TCP connection, as last reported: see TCP
}

// RNRWaitForever, as [QPConfig].RNRWait, means no time limit: a message waits until a receive
// is posted for it, or until the QP ends. A sender with ibverbs gets the same by rnr_retry =
// 7.
const RNRWaitForever time.Duration = 1<<63 - 1

const defaultRNRWait = 30 * time.Second

// QPConfig configures a QP. PD must be set; zero values elsewhere mean the defaults.
type QPConfig struct {
	PD *PD
	// SendCQ and RecvCQ receive the completions; they may be the same CQ, and shared with
	// other QPs. A CQ with too few entries for the SendDepth and RecvDepth that are
	// set is refused (ErrCQTooSmall). nil: a CQ of the QP's own, see QP.SendCQ.
	SendCQ, RecvCQ *CQ
	// SRQ, if set, provides the receives for messages of the peer. It may belong to
	// another PD.
	SRQ *SRQ
	// SendDepth and RecvDepth limit the work requests in each queue: 128 by default. A work
	// request counts until its completion has been polled, or, if it has no completion,
	// until it is done. Memory is used only as the queues fill. With an SRQ, RecvDepth
	// limits how many of its receives messages of this peer may occupy.
	SendDepth, RecvDepth int
	// IRD is how many RDMA Reads, atomic operations and Commits the peer may have
	// outstanding on this QP, and ORD how many this side may have outstanding at the peer:
	// 16 by default; -1 means none. Connection set-up may lower ORD (RFC 6581 section 9.1);
	// see QP.IRD and QP.ORD.
	IRD, ORD int
	// Solicitor, if set, makes the RDMA Reads of this QP wait until a window that QPs share
	// admits them.
	Solicitor *Solicitor
	// PrivateData is sent to the peer's application in the Request or Reply. It has at most 248
	// octets, or 508 over SCTP or with MPAOptions.LargePrivateData, which allows 512 in revision 1.
	// Of these, CommitOptions.Negotiate takes 20, and an Authenticator some (that of package cm up
	// to 96, or 128 with SuiteX25519). More is an error; Dial and Client report it before they
	// connect or send anything.
	PrivateData []byte
	// Setup runs while the QP is Idle, before this side sends its Request or Reply: it is
	// the place to post receives and to register memory for this QP alone. Send work
	// requests may be posted too; they are sent once the connection is established. An
	// error of Setup ends the set-up.
	Setup func(ctx context.Context, qp *QP) error
	// RNRWait is how long a message waits for a receive to be posted: 30 s by default.
	// On a QP with an SRQ it also waits while the QP holds RecvDepth receives, whose completions were not polled.
	// After the first second EventNoReceive reports the wait. When it is over, the stream
	// ends with DDP's "no buffer" (1/2/02, RFC 5041 section 7.2), and both sides get an
	// error that matches ErrNoReceive. A negative value ends the stream without a wait.
	// RNRWaitForever sets no limit, like rnr_retry = 7 at a sender with ibverbs.
	//
	// While a message waits, nothing is read from the connection: neither data, nor the
	// responses to RDMA Reads, nor the peer's end. This slows the peer down, and a peer
	// that has vanished may be noticed only when the wait is over.
	RNRWait time.Duration
	// StallWait is how long posted work may make no progress before EventNoProgress reports it.
	// Values below 8 ms mean 8 ms, and the report may come up to an eighth later. 0: progress is
	// not watched. Octets are counted in batches of up to a mebibyte: on a slow path StallWait
	// should be long enough for one. A negative value is an error.
	StallWait time.Duration
	MPA       MPAOptions
	// Commit enables RDMA Commit on this QP. If it is nil, Commits of the peer are refused as
	// an unknown operation, and none can be posted.
	Commit *CommitOptions
	// TLS wraps the connection of Dial or Client in TLS 1.3, below MPA. If it has no ServerName,
	// Dial uses the host of its address, as package tls does.
	TLS *tls.Config
	// Auth authenticates the connection of Dial or Client; nil: the peer may be anyone. Accept
	// uses the Authenticator of the ListenConfig, and refuses a different one here.
	Auth Authenticator
	// UserData belongs to the caller: QP.UserData returns it, and the library does not use it.
	// With it the handler of a completion finds its own state for WC.QP, because a receive may
	// complete before Accept, Dial or Client has returned the QP.
	UserData any
	// SetupTrace, if set, bounds and times the stages in which Dial or Client sets up the
	// connection. A responder does not use it.
	SetupTrace *SetupTrace
	// Trace receives a pcap of the connection, with synthetic TCP/IP headers, which Wireshark
	// decodes. A Write that fails, or panics, ends the trace and nothing else. While a Write runs, PostSend and
	// Terminate may wait for it; the end of the QP waits as it does for a Buffer: see QP.Close.
	Trace io.Writer
}

// MPAOptions are the options of MPA, the framing over TCP (RFC 5044, RFC 6581).
type MPAOptions struct {
	// Revision is the revision to request, or the highest to accept: 2 by default, or 1. A
	// responder answers with the initiator's revision, or closes the connection if that is too high.
	Revision int
	// NoCRC waives the CRC32c of every FPDU, so that only TCP's checksum protects the data.
	// CRCs are used nevertheless if the peer requests them.
	NoCRC bool
	// Markers asks the peer to insert Markers into what it sends.
	Markers bool
	// NoFallback keeps Dial from trying again with revision 1 when the peer closes the
	// connection without an answer.
	NoFallback bool
	// EarlyResponderSend lets a responder send before it has received anything,
	// which RFC 5044 section 7.1.2 forbids and some peers do.
	EarlyResponderSend bool
	// LargePrivateData raises the limit of PrivateData to 508 octets. Linux's siw
	// accepts no more than 252.
	LargePrivateData bool
	// MaxULPDU limits the size of DDP segments sent. It is at least 128, or 514 over SCTP. 0: only the path limits it.
	MaxULPDU int
	// RTR is the set of ready-to-receive messages (RFC 6581 section 9.2) that an initiator
	// offers, and that a responder accepts. With 0 an initiator offers RTRWrite and RTRRead, and
	// a responder accepts all. An RTRRead needs an ORD, and is not offered without one; a responder
	// that accepts it, or that may receive it unasked (revision 1), has an IRD of at least 1.
	// An RTRSend consumes a receive of the responder, which then completes.
	RTR RTR
	// StrictRTR makes an initiator whose RTR is 0 offer every kind, RTRSend included, as RFC 6581
	// section 9.2 requires of an initiator that can send them all. It sends the RTRSend only to a
	// responder that accepts no other kind. This is not the default, because it uses a receive
	// that the application of the responder may need for something else.
	StrictRTR bool
	// StrictDepths sets the ORD of the initiator to 0 if the responder sends an IRD and an ORD of
	// 0; no RDMA Reads can then be posted (RFC 6581 section 9.1). This is not the default, because
	// Linux's siw sends zeros if its application has specified no depths, and accepts Reads
	// nevertheless: without StrictDepths the initiator keeps its ORD. It applies to SCTP, too.
	StrictDepths bool
	// ClientServer makes an initiator offer no RTR: in RFC 6581's client-server model the
	// responder may send only after the first message of the initiator's application.
	// Without it the connection is peer to peer, and either application may begin.
	ClientServer bool
	// FixedDepths keeps an initiator from negotiating IRD and ORD. Both ends use those of their
	// QPConfig, on which the applications must agree by other means (RFC 6581 section 9.1).
	FixedDepths bool
}

func (m MPAOptions) options() mpa.Options {
	return mpa.Options{
		Revision: m.Revision, NoCRC: m.NoCRC, Markers: m.Markers,
		EarlyResponderSend: m.EarlyResponderSend, LargePrivateData: m.LargePrivateData,
		MaxULPDU: m.MaxULPDU, RTR: m.RTR, ClientServer: m.ClientServer, FixedDepths: m.FixedDepths,
		StrictRTR: m.StrictRTR, StrictDepths: m.StrictDepths,
	}
}

// An RTR is a set of ready-to-receive messages: empty messages by which an initiator lets
// the responder send (RFC 6581 section 9.2). See MPAOptions.RTR.
type RTR = transport.RTR

// The kinds of RTR.
const (
	RTRSend  = transport.RTRSend
	RTRWrite = transport.RTRWrite
	RTRRead  = transport.RTRRead
)

const (
	defaultDepth = 128
	defaultReads = 16
)

// newQP creates an Idle QP from qc.
func (r *RNIC) newQP(qc *QPConfig) (*QP, error) {
	if err := r.welcome(); err != nil {
		return nil, err
	}
	cfg, err := qc.withDefaults(r)
	if err != nil {
		return nil, err
	}
	qp := &QP{rnic: r, id: r.ids.Next(), cfg: cfg, done: make(chan struct{})}
	qp.rq.qp, qp.reserved.send, qp.reserved.recv = qp, qc.SendDepth, qc.RecvDepth
	if err := qp.attach(); err != nil {
		return nil, err
	}
	return qp, nil
}

// attach creates the CQs that are not configured, and takes the holds of the QP.
func (qp *QP) attach() error {
	qp.sendCQ, qp.recvCQ = qp.cfg.SendCQ, qp.cfg.RecvCQ
	if qp.sendCQ == nil {
		qp.sendCQ = newCQ(qp.rnic, qp.cfg.SendDepth)
	}
	if qp.recvCQ == nil {
		qp.recvCQ = newCQ(qp.rnic, qp.cfg.RecvDepth)
	}
	qp.sent.qp, qp.sent.cq, qp.sent.slots = qp, qp.sendCQ, &qp.sendSlots
	qp.received.qp, qp.received.cq, qp.received.slots = qp, qp.recvCQ, &qp.recvSlots
	return holds.Take(qp)
}

// holds are what a QP takes from its RNIC, from its PD, and from the objects that it shares with other QPs.
var holds = quota.Holds[*QP]{
	{Take: func(qp *QP) error { return qp.rnic.take(&qp.rnic.used.qp, qp.rnic.limits.MaxQP, "QPs") }, Give: func(qp *QP) { qp.rnic.used.qp.Give() }},
	{Take: func(qp *QP) error { return qp.cfg.PD.use(quota.QueuePairs) }, Give: func(qp *QP) { qp.cfg.PD.users.Remove(quota.QueuePairs) }},
	{Take: func(qp *QP) error { return qp.sendCQ.attach(qp, qp.reserved.send) }, Give: func(qp *QP) { qp.sendCQ.detach(qp.reserved.send) }},
	{Take: func(qp *QP) error { return qp.recvCQ.attach(qp, qp.reserved.recv) }, Give: func(qp *QP) { qp.recvCQ.detach(qp.reserved.recv) }},
	{Take: joinSolicitor, Give: func(qp *QP) { qp.window.Close() }},
	{Take: func(qp *QP) error { return qp.cfg.SRQ.attach() }, Give: func(qp *QP) { qp.cfg.SRQ.detach(qp) }},
}

// withDefaults checks a configuration against the limits and fills it in.
func (qc *QPConfig) withDefaults(r *RNIC) (QPConfig, error) {
	if qc == nil || qc.PD == nil {
		return QPConfig{}, fmt.Errorf("iwarp: QPConfig.PD is not set")
	}
	c := *qc
	for _, x := range []struct {
		name string
		of   *RNIC
	}{{"PD", c.PD.rnic}, {"SendCQ", rnicOf(c.SendCQ, r)}, {"RecvCQ", rnicOf(c.RecvCQ, r)}, {"SRQ", c.SRQ.home(r)}} {
		if x.of != r {
			return c, fmt.Errorf("iwarp: QPConfig.%s belongs to another RNIC", x.name)
		}
	}
	if err := quota.Within(ErrLimit, []quota.Range{
		{Name: "QPConfig.SendDepth", Value: &c.SendDepth, Default: defaultDepth, Least: 1, Most: r.limits.MaxQueueDepth},
		{Name: "QPConfig.RecvDepth", Value: &c.RecvDepth, Default: defaultDepth, Least: 1, Most: r.limits.MaxQueueDepth},
		{Name: "QPConfig.IRD", Value: &c.IRD, Default: defaultReads, Least: -1, Most: r.limits.MaxIRD},
		{Name: "QPConfig.ORD", Value: &c.ORD, Default: defaultReads, Least: -1, Most: r.limits.MaxORD},
	}); err != nil {
		return c, err
	}
	if err := c.MPA.options().Check(); err != nil {
		return c, fmt.Errorf("iwarp: QPConfig.MPA.%w", err)
	}
	if c.StallWait < 0 {
		return c, fmt.Errorf("iwarp: QPConfig.StallWait is negative: %v", c.StallWait)
	}
	c.RNRWait = cmp.Or(c.RNRWait, defaultRNRWait)
	c.PrivateData = append([]byte(nil), c.PrivateData...)
	if c.Commit != nil {
		var err error
		c.Commit, err = c.Commit.withDefaults()
		return c, err
	}
	return c, nil
}

func rnicOf(cq *CQ, def *RNIC) *RNIC {
	if cq == nil {
		return def
	}
	return cq.rnic
}

// UserData returns QPConfig.UserData. It may be called at any time, in QPConfig.Setup too.
func (qp *QP) UserData() any { return qp.cfg.UserData }

// PrivateData returns what the peer's application sent with its Request or Reply, or
// nil while the QP is not connected.
func (qp *QP) PrivateData() []byte {
	if qp.conn.Load() == nil {
		return nil
	}
	return qp.commits.private
}

// LocalAddr returns the address of this end, or nil while the QP is not connected.
func (qp *QP) LocalAddr() net.Addr {
	if qp.conn.Load() == nil {
		return nil
	}
	return qp.llp.LocalAddr()
}

// RemoteAddr returns the address of the peer, or nil while the QP is not connected.
func (qp *QP) RemoteAddr() net.Addr {
	if qp.conn.Load() == nil {
		return nil
	}
	return qp.llp.RemoteAddr()
}

// termsOf returns the terms of the connection, or, before it exists, what is known of them.
func termsOf(qp *QP) mpa.Terms {
	if qp.conn.Load() == nil {
		return mpa.Terms{IRD: max(qp.cfg.IRD, 0), ORD: max(qp.cfg.ORD, 0), PeerIRD: -1, PeerORD: -1}
	}
	return *qp.terms
}

// IRD returns how many RDMA Reads, atomic operations and Commits the peer may have outstanding
// on this QP. While the QP is not connected it returns what QPConfig requests, 0 for none.
func (qp *QP) IRD() int { return termsOf(qp).IRD }

// ORD returns how many RDMA Reads, atomic operations and Commits this QP may have outstanding;
// further ones wait in the send queue. While the QP is not connected it returns what QPConfig
// requests, 0 for none.
func (qp *QP) ORD() int { return termsOf(qp).ORD }

// PeerIRD returns the IRD that the peer stated as its own during set-up. It returns -1 if the
// peer stated none (RFC 6581 section 9.1), or if the QP is not connected.
func (qp *QP) PeerIRD() int { return termsOf(qp).PeerIRD }

// PeerORD is like PeerIRD, for the ORD.
func (qp *QP) PeerORD() int { return termsOf(qp).PeerORD }

// SendCQ returns the CQ of the send queue.
func (qp *QP) SendCQ() *CQ { return qp.sendCQ }

// RecvCQ returns the CQ of the receive queue.
func (qp *QP) RecvCQ() *CQ { return qp.recvCQ }
