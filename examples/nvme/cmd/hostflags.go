package main

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// An initiator holds the flags that all host commands share.
type initiator struct {
	nqn             string
	hostNQN, hostID string
	queues, depth   int
	crc             bool
	auth            string
	tls             tlsFiles
	timeout         time.Duration
}

// flags adds the flags that are for every command; with io, also those for commands that do I/O.
func (i *initiator) flags(fs *flag.FlagSet, io bool) {
	i.queues, i.depth = 1, 32
	fs.StringVar(&i.hostNQN, "hostnqn", "", "the `NQN` of this host, which needs -hostid; by default both are random")
	fs.StringVar(&i.hostID, "hostid", "", "the identifier of this host, a `UUID`, which needs -hostnqn")
	fs.BoolVar(&i.crc, "crc", true, "use the CRC32c of MPA; with -crc=false only if the target wants it")
	fs.StringVar(&i.auth, "auth", "", "authenticate both sides by the first key in this `file`; see nvme key")
	i.tls.flags(fs, "use TLS 1.3, with a target that has a certificate of the CAs in this `file`")
	fs.DurationVar(&i.timeout, "timeout", 10*time.Second, "how long it may take to connect, and how long one command may take")
	if io {
		fs.StringVar(&i.nqn, "nqn", "", "the `NQN` of the subsystem (default: the only one that the target offers over RDMA)")
		fs.IntVar(&i.queues, "queues", i.queues, "I/O queues, 1 to 64")
		fs.IntVar(&i.depth, "depth", i.depth, "commands outstanding on an I/O queue, 1 to 1023")
	}
}

// options checks the flags. If the connections end, commands are sent again on new ones, until
// -timeout is over.
func (i *initiator) options(addr string, s *streams) (*host.Options, error) {
	switch {
	case (i.hostNQN == "") != (i.hostID == ""):
		return nil, usage("-hostnqn and -hostid go together")
	case i.timeout <= 0:
		return nil, usage("-timeout is %v, and not more than 0", i.timeout)
	case i.queues < 1 || i.queues > 64:
		return nil, usage("-queues is %d, and not 1 to 64", i.queues)
	case i.depth < 1 || i.depth > 1023:
		return nil, usage("-depth is %d, and not 1 to 1023", i.depth)
	}
	o := &host.Options{
		HostNQN: i.hostNQN, Queues: i.queues, QueueSize: i.depth + 1,
		IOTimeout: i.timeout, AdminTimeout: i.timeout, CtrlLoss: i.timeout, ReconnectDelay: min(time.Second, i.timeout),
	}
	var err error
	if i.hostNQN != "" {
		if err := capsule.CheckNQN(i.hostNQN); err != nil {
			return nil, usage("-hostnqn: %v", err)
		}
		if o.HostID, err = parseUUID(i.hostID); err != nil {
			return nil, usage("-hostid: %v", err)
		}
	}
	o.QPConfig.MPA.NoCRC = !i.crc
	if i.auth != "" {
		if o.QPConfig.Auth, _, err = authenticator(i.auth, slog.New(slog.NewTextHandler(s.diag, nil))); err != nil {
			return nil, err
		}
	}
	o.QPConfig.TLS, err = i.tls.client(addr)
	return o, err
}

// discover lists what the target at addr offers.
func (i *initiator) discover(ctx context.Context, addr string, o *host.Options) ([]host.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	return host.Discover(ctx, addr, o)
}

// connect connects to the subsystem of -nqn.
func (i *initiator) connect(ctx context.Context, addr string, s *streams) (*host.Controller, error) {
	addr = withPort(addr)
	o, err := i.options(addr, s)
	if err != nil {
		return nil, err
	}
	nqn := i.nqn
	if nqn == "" {
		entries, err := i.discover(ctx, addr, o)
		if err != nil {
			return nil, err
		}
		if nqn, err = only(entries); err != nil {
			return nil, fmt.Errorf("%s offers %w: tell by -nqn which one to use", addr, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	return host.Connect(ctx, addr, nqn, o)
}

// only returns the name of the only NVM subsystem that is offered over RDMA. A subsystem that listens at several addresses counts as one.
func only(entries []host.Entry) (string, error) {
	var names []string
	seen := make(map[string]bool)
	for _, e := range entries {
		if e.TRTYPE == capsule.TransportRDMA && e.SUBTYPE == capsule.SubtypeNVM && !seen[e.SubNQN] {
			seen[e.SubNQN] = true
			names = append(names, e.SubNQN)
		}
	}
	switch len(names) {
	case 0:
		return "", fmt.Errorf("no NVM subsystem to this host over RDMA")
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("%d NVM subsystems (%s)", len(names), clean(strings.Join(names, ", ")))
}

// parseUUID parses 32 hexadecimal digits, with or without hyphens.
func parseUUID(text string) (id [16]byte, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is no UUID", text)
	}
	return [16]byte(b), nil
}

func formatUUID(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
