package perf

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// ErrMissed is what Main returns when a suite ran but a target was missed or a case
// could not be measured.
var ErrMissed = errors.New("not all targets are met")

// Main is the command "iwarp perf": a server, a client, or both in two processes. An
// error that matches UsageError means that it was called wrongly.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	o.args = args
	peer.OpenFiles()
	if o.server {
		return peer.Profiled(o.profile, func() error { return serveAt(ctx, o, stdout) })
	}
	if o.client != "" {
		d := net.Dialer{Timeout: peer.Timeout}
		c, err := d.DialContext(ctx, "tcp", o.client)
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // nothing is lost with it
		return o.measure(ctx, c, stdout, stderr)
	}
	return both(ctx, o, stdout, stderr)
}

func serveAt(ctx context.Context, o *options, stdout io.Writer) error {
	host, _, err := net.SplitHostPort(o.addr)
	if err != nil {
		return UsageError(err.Error())
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.addr)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // it only listened
	peer.Announce(stdout, l.Addr())
	return (&server{host: host}).serve(ctx, l, o.once)
}

// both runs the server in a child.
func both(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	var args []string
	if o.profile != "" {
		args = []string{"-cpuprofile", o.profile + ".server"}
	}
	k, err := startChild(ctx, stderr, args...)
	if err != nil {
		return err
	}
	profile := o.profile
	if profile != "" {
		profile += ".client"
	}
	err = peer.Profiled(profile, func() error { return o.measure(ctx, k.c, stdout, stderr) })
	return errors.Join(err, k.stop())
}
