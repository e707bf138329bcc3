package durable

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/goiwarp/iwarp/internal/logkey"
	"github.com/goiwarp/iwarp/stag"
)

// LogPanic logs an error that is a panic of what the application has registered, with its stack, and no other error.
func LogPanic(log *slog.Logger, err error) {
	if p := new(stag.PanicError); errors.As(err, &p) {
		log.Error("a Buffer or Flusher panicked", logkey.Method, p.Method, logkey.Value, fmt.Sprintf("%+v", p.Value), logkey.Stack, string(p.Stack))
	}
}
