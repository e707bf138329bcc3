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

	peerExtensions atomic.Uint32 // that the application has told of; beside id it takes no padding

	cfg    QPConfig
	window *soliciting.User // nil: without a Solicitor
	sendCQ *CQ
	recvCQ *CQ
	rq     recvQueue

	reserved struct{ send, recv int } // entries of the CQs, see CQ

	sent     completionBatch // guarded by the stream's lock
	received completionBatch // the receiving goroutine's

	// Set before conn is; until then no other goroutine looks at them.
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
	// A completion was lost. A goroutine that finds that looks at this before it gives up the
	// right to receive, or to send, whichever it has; one with neither has posted, and sends.
	overflow atomic.Bool

	done   chan struct{}   // closed when everything has ended
	drains slots.Broadcast // sent when send work requests have completed

	mu        lockorder.Mutex[lockorder.QP]
	early     []rdmap.Request // posted while not connected
	err       error           // the first cause of the end
	term      *TerminateError // sent or received
	fenceTold bool            // the log has been told, or will be, of work that waits: see tellFenced

	retransmits uint32 // of the TCP connection, as it was told last: see TCP
}

// RNRWaitForever, as [QPConfig].RNRWait, means no time limit: a message waits until a receive
// is posted for it, or until the QP ends. A sender with ibverbs gets the same by rnr_retry =
// 7.
const RNRWaitForever time.Duration = 1<<63 - 1

const defaultRNRWait = 30 * time.Second

// QPConfig says what a QP is made of. PD must be set; zero values elsewhere mean
// defaults.
type QPConfig struct {
	PD *PD
	// SendCQ and RecvCQ take the completions; they may be the same, and shared with
	// other QPs. A CQ without room for the SendDepth and RecvDepth that are
	// set is refused (ErrCQTooSmall). nil: a CQ of the QP's own, see QP.SendCQ.
	SendCQ, RecvCQ *CQ
	// SRQ, if it is set, is where messages of the peer take their receives from. It may
	// be of another PD.
	SRQ *SRQ
	// SendDepth and RecvDepth are how many work requests each queue takes: 128 by
	// default. One counts until its completion has been polled; one without a
	// completion, until it is done. Memory is used only as the queues fill. With an SRQ
	// RecvDepth is how many of its receives messages of this peer may occupy.
	SendDepth, RecvDepth int
	// IRD is how many RDMA Reads, atomic operations and Commits the peer may have
	// outstanding here, ORD how many this side wants to have outstanding there: 16 by
	// default, -1: none. Connection set-up may lower ORD (RFC 6581 section 9.1); see QP.IRD
	// and QP.ORD.
	IRD, ORD int
	// Solicitor, if it is set, makes the RDMA Reads of this QP wait for their part of a window
	// that QPs share.
	Solicitor *Solicitor
	// PrivateData goes to the peer's application with the Request or Reply: at most
	// 248 octets, 508 over SCTP or with MPAOptions.LargePrivateData, 512 of these in revision 1, less 20
	// with CommitOptions.Negotiate, and less what an Authenticator adds (that of package cm: up
	// to 96, or 128 with SuiteX25519). More is an error, of Dial and Client before anything is
	// connected or sent.
	PrivateData []byte
	// Setup runs while the QP is Idle, before our Request or Reply goes out: the
	// place to post receives and to register memory for this QP alone. Send work
	// requests may be posted too: they are sent once the connection is there. The
	// error of Setup ends the set-up.
	Setup func(ctx context.Context, qp *QP) error
	// RNRWait is how long a message waits for a receive to be posted: 30 s by default.
	// After the first second EventNoReceive tells of it; when the wait is over the stream
	// ends with DDP's "no buffer" (1/2/02, RFC 5041 section 7.2), for which both sides get
	// an error that matches ErrNoReceive. Negative: no wait, the stream ends at once.
	// RNRWaitForever: no limit, which is what rnr_retry = 7 means to a sender of ibverbs.
	//
	// While a message waits nothing is read from the connection, neither data nor the
	// answers to RDMA Reads nor the peer's end. That holds the peer back; and a peer that
	// is gone may be noticed only when the wait is over.
	RNRWait time.Duration
	// StallWait is how long posted work may make no progress before EventNoProgress tells of it,
	// 8 ms at least, and up to an eighth longer; 0: it is not watched. Octets are counted in
	// batches of up to a mebibyte: on a slow path it should be long enough for one. A negative
	// value is an error.
	StallWait time.Duration
	MPA       MPAOptions
	// Commit enables RDMA Commit on this QP; nil: the peer's are refused as an unknown
	// operation, and none can be posted.
	Commit *CommitOptions
	// TLS wraps the connection of Dial or Client in TLS 1.3, below MPA. Without a ServerName that of
	// Dial is the host of its address, as in package tls.
	TLS *tls.Config
	// Auth authenticates the connection of Dial or Client; nil: the peer may be anyone. Accept
	// uses that of the ListenConfig, and refuses another one here.
	Auth Authenticator
	// UserData is the caller's: QP.UserData returns it, and the library does not look at
	// it. It is how the handler of a completion finds what belongs to WC.QP, for a receive
	// may complete before Accept, Dial or Client has returned the QP.
	UserData any
	// SetupTrace bounds and times the stages in which Dial, or Client, sets the connection up;
	// nil: none. A responder has no use for it.
	SetupTrace *SetupTrace
	// Trace gets a pcap of the connection, with synthetic TCP/IP headers, which Wireshark
	// decodes. A Write that fails, or panics, ends the trace and nothing else. While a Write runs, PostSend and
	// Terminate may wait for it; the end of the QP waits as it does for a Buffer: see QP.Close.
	Trace io.Writer
}

// MPAOptions are choices of MPA, the framing over TCP (RFC 5044, RFC 6581).
type MPAOptions struct {
	// Revision to ask for, or the highest to accept: 2 by default, or 1. A responder
	// answers with the initiator's, or closes the connection if that is too high.
	Revision int
	// NoCRC waives the CRC32c of every FPDU. It is used all the same if the peer
	// asks for it. Data is then protected by TCP's checksum alone.
	NoCRC bool
	// Markers asks the peer to insert Markers into what it sends.
	Markers bool
	// NoFallback: Dial does not try again with revision 1 when the peer closes the
	// connection without an answer.
	NoFallback bool
	// EarlyResponderSend lets a responder send before it has received anything,
	// which RFC 5044 section 7.1.2 forbids and some peers do.
	EarlyResponderSend bool
	// LargePrivateData raises the ceiling of PrivateData to 508 octets. Linux's siw
	// takes no more than 252.
	LargePrivateData bool
	// MaxULPDU caps the size of DDP segments sent, 0: as the path allows. It is 128 at least, over SCTP 514.
	MaxULPDU int
	// RTR are the kinds of ready-to-receive message (RFC 6581 section 9.2) that an
	// initiator offers, and that a responder takes. 0: an initiator offers RTRWrite and
	// RTRRead; a responder takes all. An RTRRead needs an ORD, and is not offered without; for
	// a responder that takes it, or that may get it unasked (revision 1), the IRD is 1 at least.
	// An RTRSend uses up a receive of the responder's, and gives it a completion.
	RTR RTR
	// StrictRTR: an initiator whose RTR is 0 offers every kind, RTRSend included, as RFC 6581
	// section 9.2 requires of one that can send them all. It sends the RTRSend only to a
	// responder that accepts no other kind. This is not the default, because it uses a receive
	// that the application of the responder may need for something else.
	StrictRTR bool
	// StrictDepths: if the responder sends an IRD and an ORD of 0, the ORD of the initiator
	// becomes 0, and it can post no RDMA Reads (RFC 6581 section 9.1). This is not the default,
	// because Linux's siw sends zeros if its application has named no depths, and accepts Reads
	// all the same: without StrictDepths the ORD of the initiator stays. It applies to SCTP, too.
	StrictDepths bool
	// ClientServer has an initiator offer no RTR: in RFC 6581's client-server model the
	// responder may send only after the first message of the initiator's application.
	// Without it the connection is peer to peer, and either application may begin.
	ClientServer bool
	// FixedDepths: an initiator does not negotiate IRD and ORD. Both ends use those of their
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

// An RTR is a set of ready-to-receive messages: empty ones with which an initiator tells
// that the responder may send (RFC 6581 section 9.2). See MPAOptions.RTR.
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

// newQP makes an Idle QP of qc.
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

// attach takes the QP's share of its PD and CQs.
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

// holds are what a QP takes of its RNIC, of its PD, and of what it shares with other QPs.
var holds = quota.Holds[*QP]{
	{Take: func(qp *QP) error { return qp.rnic.take(&qp.rnic.used.qp, qp.rnic.limits.MaxQP, "QPs") }, Give: func(qp *QP) { qp.rnic.used.qp.Give() }},
	{Take: func(qp *QP) error { return qp.cfg.PD.use() }, Give: func(qp *QP) { qp.cfg.PD.release() }},
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

// PrivateData returns what the peer's application sent with its Request or Reply,
// nil while the QP is not connected.
func (qp *QP) PrivateData() []byte {
	if qp.conn.Load() == nil {
		return nil
	}
	return qp.commits.private
}

// LocalAddr returns the address of this end, nil while the QP is not connected.
func (qp *QP) LocalAddr() net.Addr {
	if qp.conn.Load() == nil {
		return nil
	}
	return qp.llp.LocalAddr()
}

// RemoteAddr returns the address of the peer, nil while the QP is not connected.
func (qp *QP) RemoteAddr() net.Addr {
	if qp.conn.Load() == nil {
		return nil
	}
	return qp.llp.RemoteAddr()
}

// termsOf returns the terms of the connection; while there is none, what is known of them.
func termsOf(qp *QP) mpa.Terms {
	if qp.conn.Load() == nil {
		return mpa.Terms{IRD: max(qp.cfg.IRD, 0), ORD: max(qp.cfg.ORD, 0), PeerIRD: -1, PeerORD: -1}
	}
	return *qp.terms
}

// IRD is how many RDMA Reads, atomic operations and Commits the peer may have outstanding on
// this QP. While the QP is not connected it is what QPConfig asks for, 0 for none.
func (qp *QP) IRD() int { return termsOf(qp).IRD }

// ORD is how many RDMA Reads, atomic operations and Commits this QP has outstanding at most;
// further ones wait in the send queue. While the QP is not connected it is what QPConfig
// asks for.
func (qp *QP) ORD() int { return termsOf(qp).ORD }

// PeerIRD and PeerORD are what the peer told of itself during set-up, -1 if it did not
// (RFC 6581 section 9.1) or the QP is not connected.
func (qp *QP) PeerIRD() int { return termsOf(qp).PeerIRD }

// PeerORD is described with PeerIRD.
func (qp *QP) PeerORD() int { return termsOf(qp).PeerORD }

// SendCQ returns the CQ of the send queue.
func (qp *QP) SendCQ() *CQ { return qp.sendCQ }

// RecvCQ returns the CQ of the receive queue.
func (qp *QP) RecvCQ() *CQ { return qp.recvCQ }
