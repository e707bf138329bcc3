package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// attacked is a listener that accepts everyone.
func attacked(t *testing.T) string {
	t.Helper()
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	l, err := rnic.Listen(t.Context(), "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Serve(t.Context(), func(cr *iwarp.ConnRequest) {
			if qp, err := cr.Accept(t.Context(), &iwarp.QPConfig{PD: pd, RNRWait: -1}); err == nil {
				<-qp.Done()
			}
		})
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
		require.NoError(t, rnic.Close())
	})
	return l.Addr().String()
}

func TestAttack(t *testing.T) {
	addr := attacked(t)
	var out, errs bytes.Buffer
	args := []string{"attack", "--addr", addr, "--seed", "3", "-n", "24", "--layer", "mpa,fpdu,ddp,rdmap", "--stag", "0x1234", "--len", "64", "--parts", "24", "--for", "1m"}
	require.Zero(t, iwarpMain(t, args, &out, &errs), errs.String())
	require.Contains(t, out.String(), "attacking "+addr)
	require.Contains(t, out.String(), "still takes connections")
	require.Regexp(t, `all +24 `, out.String())

	out.Reset()
	require.Zero(t, iwarpMain(t, append(args, "--json"), &out, &errs), errs.String())
	all := objects(t, out.String())
	require.Len(t, all, 1)
	require.Contains(t, all[0]["layers"], "rdmap")
}

// TestAttackWithoutAConversation: there is no time for one, and none was refused.
func TestAttackWithoutAConversation(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, iwarpMain(t, []string{"attack", "--addr", attacked(t), "--for", "1ns"}, &out, &errs), errs.String())
	require.Contains(t, out.String(), "still takes connections")
}

// A stopper interrupts a command when it prints the first time.
type stopper context.CancelFunc

func (s stopper) Write(b []byte) (int, error) {
	s()
	return len(b), nil
}

// TestAttackInterrupted: it reports neither that the target still takes connections, nor that it took none.
func TestAttackInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var errs bytes.Buffer
	args := []string{"attack", "--addr", attacked(t), "--layer", "mpa"}
	require.Equal(t, cli.Interrupted, cli.Main(ctx, rootCommand(), args, cli.Streams{Out: stopper(interrupt), Err: &errs}), errs.String())
	require.Equal(t, "iwarp attack: interrupted\n", errs.String())
}

// TestAttackOnOthersIsRefused before a packet is sent.
func TestAttackOnOthersIsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "--addr must be host:port",
		"--addr 192.0.2.1:1":                   "192.0.2.1 is not a loopback address: confirm by --i-own 192.0.2.1 that it is yours",
		"--addr 192.0.2.1:1 --i-own 192.0.2.2": `--i-own names "192.0.2.2"`,
		"--addr [2001:db8::1]:1":               "confirm by --i-own 2001:db8::1",
		"--addr :1":                            "--addr must be host:port",
		"--addr 127.0.0.1:1 --i-own localhost": "--i-own names",
		"--addr 127.0.0.1:bogus":               "tcp/bogus: unknown port",
		"--addr 192.0.2.1:x --i-own 192.0.2.1": "tcp/x: unknown port",
		"--addr 127.0.0.1:65536":               "invalid port",
		"--addr 127.0.0.1:1 --layer ip":        `no layer "ip"`,
		"--addr 127.0.0.1:1 --layer sctp,tcp":  "one after the other",
		"--addr 127.0.0.1:1 --for 0s":          "must be positive",
		"--addr 127.0.0.1:1 --len 4294967296":  "value out of range",
		"--addr 127.0.0.1:1 --stag one":        "invalid syntax",
		"--addr 127.0.0.1:1 now":               "unexpected argument",
		"--addr 127.0.0.1:1 --seed -1":         "want a whole number that is not negative",
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, iwarpMain(t, append([]string{"attack"}, strings.Fields(args)...), &out, &errs), args)
		require.Contains(t, errs.String(), want, args)
		require.Empty(t, out.String(), args)
	}
	a := &attacking{addr: "192.0.2.1:1", own: "192.0.2.1"}
	require.NoError(t, a.confirmed(t.Context()), "the tester has confirmed it")
}

func TestAttackOnNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	var out, errs bytes.Buffer
	require.Equal(t, cli.Unconnected, iwarpMain(t, []string{"attack", "--addr", addr, "-n", "3"}, &out, &errs))
	require.Contains(t, errs.String(), "no connection")
	for _, span := range []string{"100ms", "1ns"} { // some dials are in progress at the end, or none has begun
		require.Equal(t, cli.Unconnected, iwarpMain(t, []string{"attack", "--addr", addr, "--for", span}, &out, &errs), errs.String())
	}
	require.Zero(t, iwarpMain(t, []string{"attack", "-h"}, &out, &errs))
	require.Contains(t, out.String(), "attack\nnothing that is not yours")
}

// TestAttackOverUDP: UDP refuses no packet, so only an answer proves that there is a target.
func TestAttackOverUDP(t *testing.T) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer c.Close()
	args := []string{"attack", "--layer", "sctp", "-n", "1", "--seed", "10", "--addr", c.LocalAddr().String()}
	var out, errs bytes.Buffer
	require.Equal(t, cli.Unconnected, iwarpMain(t, args, &out, &errs), "it does not answer")
	require.Contains(t, errs.String(), "no connection")
	require.Regexp(t, `all +1 +0 `, out.String())

	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer rnic.Close()
	l, err := rnic.Listen(t.Context(), "sctp+udp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	defer l.Close()
	args[len(args)-1] = l.Addr().String()
	require.Zero(t, iwarpMain(t, args, &out, &errs), errs.String())
}
