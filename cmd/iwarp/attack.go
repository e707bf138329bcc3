package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/internal/hostile/attack"
	"github.com/goiwarp/iwarp/internal/hostile/drive"
	"github.com/goiwarp/iwarp/stag"
)

// An attacking holds the flags of "iwarp attack".
type attacking struct {
	addr, layers, own string
	seed, first, n    uint64
	time              time.Duration
	parts             int
	stag, to, length  string
	nqn               string
	json              bool
}

const attackHelp = `Sends random attacks to a listener of yours: broken set-ups, FPDUs, segments and messages, replays, floods, slow octets,
half-open connections and resets. It is for testing programs that you have written for this library, or for another iWARP
stack. The target may be left without memory, descriptors or time, and its peers with it.

It attacks loopback addresses only. Another one must be confirmed by --i-own with the very host that --addr names: attack
nothing that is not yours.

A conversation can be repeated from its layer, --seed and its number: --layer rdmap --seed 7 --first 1234 -n 1 repeats one.
The exit status is 0 if the target still takes connections afterwards, 1 if it does not, 2 after a wrong call, and 3
if it took none. Over SCTP it is 0 if anything came back, and 3 if nothing did.`

func attackCommand() *cobra.Command {
	a := &attacking{}
	cmd := &cobra.Command{
		Use: "attack --addr HOST:PORT", Short: "send random attacks to a listener of yours", Long: attackHelp, Args: cli.NoArgs,
		Example: "  iwarp attack --addr 127.0.0.1:7174 --for 1m",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.options(cmd.Context())
			if err != nil {
				return err
			}
			return a.attacks(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	a.flags(cmd)
	return cmd
}

func (a *attacking) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&a.addr, "addr", "", "`HOST:PORT` of the target")
	fs.StringVar(&a.layers, "layer", "tcp,mpa,fpdu,ddp,rdmap,commit", "`LAYERS` at which to attack: of tcp, mpa, fpdu, ddp, rdmap, commit, cm, rma, nvme; or sctp, over UDP")
	fs.StringVar(&a.own, "i-own", "", "the `HOST` of --addr, which you confirm to be yours if it is not a loopback address")
	fs.Uint64Var(&a.seed, "seed", 1, "seed of all random choices")
	fs.Uint64Var(&a.first, "first", 0, "number of the first conversation of each layer")
	fs.Uint64VarP(&a.n, "count", "n", 0, "number of conversations; 0: until --for is over")
	fs.DurationVar(&a.time, "for", 10*time.Second, "how long to attack at most")
	fs.IntVar(&a.parts, "parts", 16, "number of attackers at a time")
	fs.StringVar(&a.stag, "stag", "0", "`STAG` of a region that the attackers know; 0: none")
	fs.StringVar(&a.to, "to", "0", "tagged `OFFSET` of the first octet of that region")
	fs.StringVar(&a.length, "len", "0", "`LENGTH` of that region")
	fs.BoolVar(&a.json, "json", false, "print JSON")
	fs.StringVar(&a.nqn, "nqn", "", "`NAME` of a subsystem of NVMe")
}

// options checks the flags.
func (a *attacking) options(ctx context.Context) (drive.Options, error) {
	o := drive.Options{Addrs: make(map[attack.Layer]string), Seed: a.seed, First: a.first, N: a.n, Parts: a.parts}
	if a.time <= 0 || a.parts <= 0 {
		return o, cli.Usagef("--for and --parts must be positive")
	}
	for l := range strings.SplitSeq(a.layers, ",") {
		if !slices.Contains(attack.Layers(), attack.Layer(l)) {
			return o, cli.Usagef("--layer: there is no layer %q: want some of %v", l, attack.Layers())
		}
		o.Addrs[attack.Layer(l)] = a.addr
	}
	if o.Addrs[attack.SCTP] != "" && len(o.Addrs) > 1 {
		return o, cli.Usagef("--layer: sctp is over UDP, the others over TCP: attack them one after the other")
	}
	var at [3]uint64
	for i, s := range []string{a.stag, a.to, a.length} {
		n, err := strconv.ParseUint(s, 0, []int{32, 64, 31}[i])
		if err != nil {
			return o, cli.Usagef("--%s: %v", []string{"stag", "to", "len"}[i], err)
		}
		at[i] = n
	}
	o.At = attack.Target{STag: stag.STag(at[0]), TO: at[1], Len: uint32(at[2]), NQN: a.nqn}
	return o, a.confirmed(ctx)
}

// confirmed refuses an invalid address, and an address of another host that was not confirmed.
func (a *attacking) confirmed(ctx context.Context) error {
	host, port, err := net.SplitHostPort(a.addr)
	if err != nil || host == "" {
		return cli.Usagef("--addr must be host:port")
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return cli.UsageError("--addr: " + err.Error())
	}
	if a.own != "" && a.own != host {
		return cli.Usagef("--i-own names %q, and --addr %q", a.own, host)
	}
	if a.own == host {
		return nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return err
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return cli.Usagef("%s is not a loopback address: confirm by --i-own %s that it is yours", host, host)
		}
	}
	return nil
}

// attacks attacks, prints the results, and checks whether the target still takes connections.
func (a *attacking) attacks(ctx context.Context, o drive.Options, w io.Writer) error {
	if !a.json {
		fmt.Fprintf(w, "attacking %s at %s, %d at a time, seed %d, from conversation %d on\n\n", a.addr, a.layers, a.parts, a.seed, a.first)
	}
	attacked, stop := context.WithTimeout(ctx, a.time)
	defer stop()
	tally, err := drive.Run(attacked, o)
	if err != nil {
		return err
	}
	if err := a.print(w, tally); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // it is not known whether the target still takes connections
	}
	overUDP := o.Addrs[attack.SCTP] != ""
	t := tally.Total()
	if t.Conversations > 0 && !taken(t, overUDP) {
		return fmt.Errorf("%w to %s was possible: check the address and the port", cli.ErrUnconnected, a.addr)
	}
	if overUDP {
		return nil
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	c, err := d.DialContext(ctx, "tcp", a.addr)
	switch {
	case err != nil && t.Conversations == 0:
		return err
	case err != nil:
		// Not %w, which would mean "no connection": there was a target, and the attack has ended it.
		return fmt.Errorf("the target takes no connection any more: %s", err.Error())
	}
	if !a.json {
		fmt.Fprintln(w, "\nthe target still takes connections")
	}
	return c.Close()
}

// taken reports whether the target took a connection. UDP refuses none: with UDP it must have answered.
func taken(t drive.Count, overUDP bool) bool {
	if overUDP {
		return t.Got > 0
	}
	return t.Refused < t.Conversations
}

// print prints the results of the attack. As JSON they are an object with the counts of each layer.
func (a *attacking) print(w io.Writer, tally *drive.Tally) error {
	if a.json {
		return json.NewEncoder(w).Encode(map[string]any{"addr": a.addr, "seed": a.seed, "first": a.first, "layers": tally.Layers})
	}
	_, err := fmt.Fprint(w, tally)
	return err
}
