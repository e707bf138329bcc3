package cm

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/bucket"
	"github.com/goiwarp/iwarp/internal/logkey"
	"github.com/goiwarp/iwarp/internal/recent"
)

// keptEvents is the greatest number of records that AccessLog returns.
const keptEvents = 1024

// An AccessEvent is a record of the illegal-access log: a connection that was refused. Its fields
// about the client hold what the client claimed.
type AccessEvent struct {
	ID         uint64 // the number of the refusal, which counts refusals without a record too
	Time       time.Time
	Source     string
	Listener   string // the local address
	Reason     Reason // the true reason, which the peer does not learn
	KeyID      uint64
	ClientID   [16]byte
	Mode       Mode // 0: unknown
	Suite      Suite
	Age        time.Duration // of a Request of mode A, by its own time
	Suppressed uint64        // refusals without a record since the last record
}

func (e *AccessEvent) attrs() []slog.Attr {
	return []slog.Attr{
		slog.Uint64(logkey.Event, e.ID), slog.Time(logkey.At, e.Time),
		slog.String(logkey.Source, e.Source), slog.String(logkey.Listener, e.Listener),
		slog.String(logkey.Reason, e.Reason.String()), slog.String(logkey.Stage, e.Reason.Stage()),
		slog.Uint64(logkey.Key, e.KeyID), slog.String(logkey.Client, printable(e.ClientID)),
		slog.String(logkey.Mode, e.Mode.String()), slog.Int(logkey.Suite, int(e.Suite)),
		slog.Duration(logkey.Age, e.Age), slog.Uint64(logkey.Suppressed, e.Suppressed),
	}
}

// printable returns an ID that a peer has chosen as printable text.
func printable(id [16]byte) string {
	quoted := strconv.QuoteToASCII(strings.TrimRight(string(id[:]), "\x00"))
	return quoted[1 : len(quoted)-1]
}

// An accessLog keeps and writes records, as many as its bucket allows.
type accessLog struct {
	rate   int
	logger *slog.Logger // nil: none

	mu         sync.Mutex
	records    bucket.Bucket
	events     uint64
	suppressed uint64 // since the last record
	allLost    uint64 // all suppressed refusals
	kept       recent.Log[AccessEvent]
}

// add makes a record of a refusal, or only counts it if there are too many of the source or in total.
func (l *accessLog) add(e AccessEvent, sourceMay bool) {
	if !l.keep(&e, sourceMay) || l.logger == nil {
		return
	}
	l.logger.LogAttrs(context.Background(), slog.LevelWarn, "connection refused", e.attrs()...)
}

func (l *accessLog) keep(e *AccessEvent, sourceMay bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	e.ID = l.events
	if !sourceMay || !l.records.Take(e.Time, float64(l.rate), float64(l.rate)) {
		l.suppressed++
		l.allLost++
		return false
	}
	e.Suppressed, l.suppressed = l.suppressed, 0
	l.kept.Add(*e, keptEvents)
	return true
}

// list returns the kept records, oldest first.
func (l *accessLog) list() []AccessEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.List()
}

func (l *accessLog) lost() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.allLost
}
