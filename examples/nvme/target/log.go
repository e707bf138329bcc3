package target

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// linesPerSecond is how many lines are logged: hosts cause them.
const linesPerSecond = 10

// A logLimit is a logger that drops lines when there are too many.
type logLimit struct {
	log *slog.Logger

	mu      sync.Mutex
	since   time.Time
	lines   int
	dropped int
}

func (l *logLimit) info(msg string, args ...any) { l.line(slog.LevelInfo, msg, args) }
func (l *logLimit) warn(msg string, args ...any) { l.line(slog.LevelWarn, msg, args) }

func (l *logLimit) line(level slog.Level, msg string, args []any) {
	dropped, ok := l.admits()
	if !ok {
		return
	}
	if dropped > 0 {
		args = append(args, "dropped", dropped)
	}
	l.log.Log(context.Background(), level, msg, args...)
}

// admits counts a line. If the line may be logged, it returns how many dropped lines were not reported yet.
func (l *logLimit) admits() (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.since) >= time.Second {
		dropped, l.since, l.lines, l.dropped = l.dropped, now, 0, 0
	}
	if l.lines++; l.lines > linesPerSecond {
		l.dropped++
		return 0, false
	}
	return dropped, true
}

// A limitedHandler handles the log of the RNIC, whose lines count as well.
type limitedHandler struct {
	slog.Handler
	limit *logLimit
}

func (h limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	dropped, ok := h.limit.admits()
	if !ok {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("dropped", dropped))
	}
	return h.Handler.Handle(ctx, r)
}

func (h limitedHandler) WithAttrs(all []slog.Attr) slog.Handler {
	return limitedHandler{h.Handler.WithAttrs(all), h.limit}
}

func (h limitedHandler) WithGroup(name string) slog.Handler {
	return limitedHandler{h.Handler.WithGroup(name), h.limit}
}
