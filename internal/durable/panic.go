package durable

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/goiwarp/iwarp/internal/logkey"
	"github.com/goiwarp/iwarp/stag"
)

// LogPanic logs err, with its stack, if it is a panic of a function that the application has registered. It logs no other error.
func LogPanic(log *slog.Logger, err error) {
	if p := new(stag.PanicError); errors.As(err, &p) {
		log.Error("a Buffer or Flusher panicked", logkey.Method, p.Method, logkey.Value, fmt.Sprintf("%+v", p.Value), logkey.Stack, string(p.Stack))
	}
}
