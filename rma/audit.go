package rma

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/bucket"
	"github.com/goiwarp/iwarp/internal/logkey"
	"github.com/goiwarp/iwarp/internal/lru"
	"github.com/goiwarp/iwarp/internal/recent"
	"github.com/goiwarp/iwarp/regionkey"
)

const (
	keptEvents   = 1024 // most records that Server.AuditLog returns
	auditedPeers = 4096 // peers whose rate is tracked
	auditRate    = 10   // records per second and peer
)

// An AuditEvent records what a peer was refused or granted, or that a connection was ended because of
// the peer. It contains no key, no tag and no data.
type AuditEvent struct {
	ID         uint64 // the number of the event, from 1; events without a record have one too
	Time       time.Time
	Peer       iwarp.Peer // zero for a Rekey of this side
	Known      bool       // the peer was authenticated
	Remote     net.Addr   // nil for a Rekey of this side
	Op         Op         // 0: none
	Region     uint64
	Epoch      regionkey.Epoch // that the peer requested or was granted
	Ops        Ops             // of a granted Open
	Granted    bool
	Reason     string // why the request was refused or the connection ended, or "late commit"; empty if Granted
	Suppressed uint64 // events without a record since the last record of this peer, of all unauthenticated peers, or of this side
}

func (e *AuditEvent) attrs() []slog.Attr {
	remote := ""
	if e.Remote != nil {
		remote = e.Remote.String()
	}
	return []slog.Attr{
		slog.Uint64(logkey.Event, e.ID), slog.Time(logkey.At, e.Time),
		slog.String(logkey.Peer, hex.EncodeToString(e.Peer.ID[:])), slog.Bool(logkey.Known, e.Known), slog.String(logkey.Remote, remote),
		slog.String(logkey.Op, e.opName()), slog.Uint64(logkey.Region, e.Region), slog.Uint64(logkey.Epoch, uint64(e.Epoch)),
		slog.Int(logkey.Ops, int(e.Ops)), slog.String(logkey.Reason, e.Reason), slog.Uint64(logkey.Suppressed, e.Suppressed),
	}
}

func (e *AuditEvent) opName() string {
	if e.Op == 0 {
		return ""
	}
	return e.Op.String()
}

// An author is a peer or this side: the events of each author have a bound of their own. All peers that
// are not authenticated count as one author, because addresses cost them nothing.
type author struct {
	peer [32]byte
	here bool // this side
}

var thisSide = author{here: true}

func byPeer(p *iwarp.Peer) author { return author{peer: p.ID} }

// A peerRate bounds the records about a peer, or about this side.
type peerRate struct {
	bucket.Bucket
	suppressed uint64 // events since the last record
}

// An audit keeps and writes records, at most auditRate per second and author.
type audit struct {
	logger *slog.Logger // nil: none

	mu      sync.Mutex
	peers   *lru.Map[author, *peerRate]
	events  uint64
	allLost uint64
	kept    recent.Log[AuditEvent]
}

func newAudit(logger *slog.Logger) *audit {
	return &audit{logger: logger, peers: lru.New[author, *peerRate](auditedPeers)}
}

// log passes a record to the Logger, whose Handler may take long.
func (l *audit) log(e *AuditEvent) {
	if l.logger == nil {
		return
	}
	level, text := slog.LevelWarn, "operation refused"
	if e.Granted {
		level, text = slog.LevelInfo, "operation granted"
	}
	l.logger.LogAttrs(context.Background(), level, text, e.attrs()...)
}

// keep makes a record, which the caller passes to log. If the author has too many events, it only counts the event,
// and reports false.
func (l *audit) keep(by author, e *AuditEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	e.ID = l.events
	peer, ok := l.peers.Get(by)
	if !ok {
		peer = new(peerRate)
		l.peers.Put(by, peer)
	}
	if !peer.Take(e.Time, auditRate, auditRate) {
		peer.suppressed++
		l.allLost++
		return false
	}
	e.Suppressed, peer.suppressed = peer.suppressed, 0
	l.kept.Add(*e, keptEvents)
	return true
}

// list returns the kept records, oldest first.
func (l *audit) list() []AuditEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.List()
}

// counts returns the number of events, and how many of them have no record.
func (l *audit) counts() (events, lost uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events, l.allLost
}
