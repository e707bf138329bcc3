package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/internal/units"
)

// An order is a command of -control: its name, its arguments, and what it does. The result follows
// the ok.
type order struct {
	name, args string
	do         func(d *disks, args []string) (string, error)
}

var orders = []order{
	{"add", "SPEC", (*disks).orderAdd},
	{"remove", "NSID", (*disks).orderRemove},
	{"resize", "NSID SIZE", (*disks).orderResize},
	{"end", "HOSTNQN QID", (*disks).orderEnd},
	{"stats", "", func(d *disks, _ []string) (string, error) { return d.counters(), nil }},
}

// obey executes the orders, one per line, until in ends or fails. It answers each with one line, and also a failure.
func (d *disks) obey(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		result, err := d.order(line)
		if err != nil {
			fmt.Fprintln(out, "error:", errtext.OneLine(err.Error()))
			continue
		}
		fmt.Fprintln(out, strings.TrimSpace("ok "+result))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintf(out, "error: %v\n", err)
	}
}

func (d *disks) order(line string) (string, error) {
	name, rest, _ := strings.Cut(line, " ")
	for _, o := range orders {
		if o.name != name {
			continue
		}
		args := strings.Fields(rest)
		if o.args == "SPEC" { // a path may have spaces in it
			args = []string{strings.TrimSpace(rest)}
		}
		if len(args) != len(strings.Fields(o.args)) || len(args) > 0 && args[0] == "" {
			return "", fmt.Errorf("want: %s", strings.TrimSpace(o.name+" "+o.args))
		}
		return o.do(d, args)
	}
	return "", fmt.Errorf("no such command: %q", name)
}

// orderAdd answers with the NSID.
func (d *disks) orderAdd(args []string) (string, error) {
	nsid, err := d.add(args[0])
	return strconv.FormatUint(uint64(nsid), 10), err
}

func (d *disks) orderRemove(args []string) (string, error) {
	nsid, err := parseNSID(args[0])
	if err != nil {
		return "", err
	}
	return "", d.remove(nsid)
}

func (d *disks) orderResize(args []string) (string, error) {
	nsid, err := parseNSID(args[0])
	if err != nil {
		return "", err
	}
	var n units.Size
	if err := n.Set(args[1]); err != nil {
		return "", fmt.Errorf("%q is %w", args[1], err)
	}
	return "", d.resize(nsid, int64(n))
}

// orderEnd answers with the number of queues that are closed: a host may have several controllers.
func (d *disks) orderEnd(args []string) (string, error) {
	qid, err := strconv.ParseUint(args[1], 10, 16)
	if err != nil {
		return "", fmt.Errorf("%q is no QID", args[1])
	}
	n := d.target.EndQueue(args[0], uint16(qid))
	if n == 0 {
		return "", fmt.Errorf("host %q has no queue %d", args[0], qid)
	}
	return strconv.Itoa(n), nil
}

func parseNSID(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no NSID", text)
	}
	return uint32(n), nil
}
