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
	l.mu.Lock()
	now := time.Now()
	dropped := 0
	if now.Sub(l.since) >= time.Second {
		dropped, l.since, l.lines, l.dropped = l.dropped, now, 0, 0
	}
	l.lines++
	over := l.lines > linesPerSecond
	if over {
		l.dropped++
	}
	l.mu.Unlock()
	if over {
		return
	}
	if dropped > 0 {
		args = append(args, "dropped", dropped)
	}
	l.log.Log(context.Background(), level, msg, args...)
}
