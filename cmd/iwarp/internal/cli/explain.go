package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/sockerr"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctpkernel"
)

// ServedBy is the annotation of a command that names the command which starts its server.
const ServedBy = "served by"

// A failure is an error as a user sees it.
type failure struct {
	command, text string
	status        int
}

// print writes one line.
func (f *failure) print(w io.Writer) { fmt.Fprintf(w, "%s: %s\n", f.command, f.text) }

func (f *failure) printJSON(w io.Writer) {
	_ = json.NewEncoder(w).Encode(struct { // an error here cannot be reported anywhere else
		Error  string `json:"error"`
		Status int    `json:"status"`
	}{f.text, f.status})
}

// A cause recognises errors by their cause, and says what a user can do about it.
type cause struct {
	is     func(error) bool
	status int
	remedy string // %s: the command that starts the server
}

// oneOf returns a function that reports whether an error is one of targets.
func oneOf(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return sockerr.Is(err, t) })
	}
}

func isUnknownHost(err error) bool {
	e := (*net.DNSError)(nil)
	return errors.As(err, &e) && !isBadAddress(err)
}

// isBadAddress reports whether a text is not an address.
func isBadAddress(err error) bool {
	e := (*net.AddrError)(nil)
	return errors.As(err, &e) || strings.Contains(err.Error(), "unknown port")
}

func isUnknownNetwork(err error) bool { return errors.As(err, new(net.UnknownNetworkError)) }

// isOutOfPorts reports whether no local port is left. Errors of other resources that have run out have other numbers.
func isOutOfPorts(err error) bool {
	return errors.Is(err, transport.ErrExhausted) &&
		(sockerr.Is(err, syscall.EADDRNOTAVAIL) || sockerr.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EAGAIN))
}

func isTimeout(err error) bool {
	e := net.Error(nil)
	return errors.As(err, &e) && e.Timeout() || sockerr.Is(err, syscall.ETIMEDOUT)
}

// isPeersFailure reports whether the peer has ended a connection because it could not read or write the data, for example a file
// on a disk that is full.
func isPeersFailure(err error) bool {
	t := (*iwarp.TerminateError)(nil)
	return errors.As(err, &t) && t.Remote && isCatastrophic(t)
}

func isCatastrophic(t *iwarp.TerminateError) bool {
	c := transport.MakeCode(t.Layer, t.Type, t.Code)
	return c == transport.RDMAPLocalCatastrophic || c == transport.DDPLocalCatastrophic
}

// isEnd reports whether the peer has ended a connection. Errors that look like it are the end of a file, a peer that no longer answers,
// and failures of this side that end a connection, such as that of a file which is its memory, or the lack of memory for a socket.
func isEnd(err error) bool {
	if t := (*iwarp.TerminateError)(nil); errors.As(err, &t) && !t.Remote && isCatastrophic(t) {
		return false
	}
	ends := oneOf(syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED)(err)
	if e := syscall.Errno(0); errors.As(err, &e) && !ends {
		return false
	}
	f := (*transport.Fault)(nil)
	lost := errors.As(err, &f) && f.Code == transport.MPAConnectionLost
	return !errors.As(err, new(*fs.PathError)) && (lost || ends || errors.Is(err, net.ErrClosed))
}

// isForeign reports whether the peer's answer was not MPA. Package iwarp has texts for that, and no error to match.
func isForeign(err error) bool {
	text := err.Error()
	return errors.Is(err, mpa.ErrNoReply) || strings.Contains(text, "before it sent an MPA Reply") || strings.Contains(text, "not an MPA frame")
}

const noAnswer = "no answer in time: check the address, the firewall, and that %s runs there"

// causes are tried in this order.
var causes = []cause{
	{isBadAddress, Misused, "want host:port, as in 192.0.2.1:7471"},
	{isUnknownNetwork, Misused, "tcp, sctp and sctp+udp are known"},
	{isUnknownHost, Unconnected, "check the name of the host, or use its address"},
	{isOutOfPorts, Failed, "end some connections, or have more ports: sysctl net.ipv4.ip_local_port_range"},
	{oneOf(syscall.EADDRINUSE), Failed, "choose another port, or end the program that has this one (ss -lntp shows it)"},
	{oneOf(syscall.EADDRNOTAVAIL), Failed, "this host has no such address: ip address lists those that it has"},
	{oneOf(sctpkernel.ErrNoSCTP, syscall.EPROTONOSUPPORT), Failed, "modprobe sctp as root, or use --network sctp+udp"},
	{oneOf(syscall.EMFILE), Failed, "too few descriptors: raise the limit, by ulimit -n 65536 for example"},
	{oneOf(iwarp.ErrAuth), Unconnected, "the keys of both sides have to be the same"},
	{oneOf(iwarp.ErrRejected), Unconnected, "the server answers, and does not take this connection: its log says why"},
	{oneOf(mpa.ErrTLS), Unconnected, "the peer uses TLS: this command does not"},
	{isForeign, Unconnected, "the peer does not speak iWARP: check the address and the port, and that %s runs there"},
	{oneOf(syscall.ECONNREFUSED), Unconnected, "nothing listens there: check the address and the port, or start the server (%s)"},
	{oneOf(syscall.EHOSTUNREACH, syscall.ENETUNREACH), Unconnected, "check the address and the route to it"},
	{oneOf(syscall.EACCES, syscall.EPERM, fs.ErrPermission), Failed, "this user may not, or a firewall of this host forbids it: check the rights, or use a port from 1024 on"},
	{oneOf(context.DeadlineExceeded), Unconnected, noAnswer}, // before isEnd: after the deadline this side closes the connection, not the peer
	{isPeersFailure, Failed, "the peer has failed to read or write what was asked for: its log says why"},
	{isEnd, Unconnected, "the peer has ended the connection: look whether %s still runs there"},
	{isTimeout, Unconnected, noAnswer},
	{oneOf(ErrUnconnected), Unconnected, ""},
}

// explain says what a user can do about an error, in one line.
func explain(cmd *cobra.Command, err error) *failure {
	f := &failure{command: cmd.CommandPath(), text: errtext.OneLine(err.Error()), status: Failed}
	switch {
	case errors.As(err, new(interruptedError)):
		f.text, f.status = "interrupted", Interrupted
		return f
	case errors.As(err, new(UsageError)):
		f.status = Misused
		return f
	case errors.Is(err, marks.ErrMissed):
		return f
	}
	for _, c := range causes {
		if c.is(err) {
			f.status = c.status
			if c.remedy != "" {
				f.text += "; " + remedy(cmd, c.remedy)
			}
			break
		}
	}
	return f
}

// remedy puts the name of the server into a remedy.
func remedy(cmd *cobra.Command, text string) string {
	if !strings.Contains(text, "%s") {
		return text
	}
	for c := cmd; c != nil; c = c.Parent() {
		if s := c.Annotations[ServedBy]; s != "" {
			return fmt.Sprintf(text, s)
		}
	}
	return fmt.Sprintf(text, "the server")
}
