package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/internal/sockerr"
	"github.com/goiwarp/iwarp/monitor"
)

// DefaultAddr is the default address of a process's state.
const DefaultAddr = "127.0.0.1:9464"

// A process that is being started may not listen yet: for how long, and how often, its state is requested again.
const (
	startTime  = 2 * time.Second
	startPause = 100 * time.Millisecond
)

// maxState bounds what is read of a server: enough for 100,000 connections.
const maxState = 256 << 20

// A source reads the state of a process.
type source struct {
	base   string // URL of the page, ending with a slash
	client http.Client
}

// newSource parses an address as a user writes it: HOST:PORT, or the URL of the page, of the metrics or of the state.
func newSource(text string) (*source, error) {
	if !strings.Contains(text, "://") {
		if strings.HasPrefix(text, ":") {
			text = "127.0.0.1" + text
		}
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, cli.Usagef("%q is no address: want host:port, or the URL of the page", text)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, cli.Usagef("%q: want a URL of http or https", text)
	case u.Hostname() == "":
		return nil, cli.Usagef("%q has no host: want host:port, or the URL of the page", text)
	case u.Scheme == "http" && u.Port() == "" && u.Path == "":
		return nil, cli.Usagef("%q has no port: want host:port, as in %s", u.Host, DefaultAddr)
	}
	for _, file := range []string{"state.json", "metrics"} {
		u.Path = strings.TrimSuffix(u.Path, "/"+file)
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/"
	u.RawQuery, u.Fragment = "", ""
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &source{base: u.String(), client: http.Client{Transport: transport}}, nil
}

// close releases the connection to the server.
func (s *source) close() { s.client.CloseIdleConnections() }

// first reads the state. If nothing listens, it tries again for a while.
func (s *source) first(ctx context.Context, timeout time.Duration) (*monitor.State, error) {
	for until := time.Now().Add(startTime); ; {
		state, err := s.fetch(ctx, timeout)
		if !sockerr.Is(err, syscall.ECONNREFUSED) || !time.Now().Before(until) {
			return state, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(startPause):
		}
	}
}

// fetch reads the state. Its errors name the cause, and what to do.
func (s *source) fetch(ctx context.Context, timeout time.Duration) (*monitor.State, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	where := s.base + "state.json"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, unanswered(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, refusal(where, answer)
	}
	state := new(monitor.State)
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxState)).Decode(state); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, foreign("%s is no state of iWARP connections (%v)", where, err)
	}
	if state.Process.PID == 0 {
		return nil, foreign("%s is no state of iWARP connections, but other JSON", where)
	}
	return state, nil
}

// unanswered explains why there was no answer by HTTP.
func unanswered(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err // without the URL, which errors of package net repeat
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return foreign("%v: the server speaks no HTTP", err)
}

// refusal explains a status of HTTP, with what the server says about it in one line.
func refusal(where string, answer *http.Response) error {
	text := where + ": " + answer.Status
	says, _ := io.ReadAll(io.LimitReader(answer.Body, 200)) // an incomplete text is useful, too
	if line := strings.TrimSpace(string(says)); answer.StatusCode != http.StatusNotFound && line != "" && !strings.ContainsAny(line, "\n<") {
		text += " (" + line + ")"
	}
	return foreign("%s", clean(text))
}

// foreign returns the error of an address at which something else listens.
func foreign(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+"; give the address of iwarp perf --metrics, of iwarp serve --http, or of where a program serves monitor.NewHandler",
		append([]any{cli.ErrUnconnected}, args...)...)
}
