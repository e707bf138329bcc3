package nvmehost

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// A Job holds the parameters of a script.
type Job struct {
	Addr    string // of the target, with its port
	SubNQN  string
	HostNQN string // "" : a random one
	NoCRC   bool
	Say     io.Writer // what the script reports
}

// scripts lists all scripts.
var scripts = map[string]func(context.Context, *Job) error{
	"inspect":   inspect,
	"transfer":  transfer,
	"statuses":  statuses,
	"wrong-key": wrongKey,
	"steady":    steady,
}

// Names lists the scripts.
func Names() []string { return slices.Sorted(maps.Keys(scripts)) }

// Run runs a script.
func Run(ctx context.Context, name string, j *Job) error {
	f := scripts[name]
	if f == nil {
		return fmt.Errorf("nvmehost: no script %q, only %s", name, strings.Join(Names(), ", "))
	}
	return f(ctx, j)
}

func (j *Job) say(format string, args ...any) { fmt.Fprintf(j.Say, format+"\n", args...) }

// options returns the options of a host that waits for an emulated machine.
func (j *Job) options(queues int) *host.Options {
	return &host.Options{
		HostNQN: j.HostNQN, Queues: queues, QueueSize: 64,
		KATO: 30 * time.Second, IOTimeout: time.Minute, ReconnectDelay: time.Second,
		QPConfig: iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: j.NoCRC}},
	}
}

// open connects, and returns the first namespace.
func (j *Job) open(ctx context.Context, queues int) (*host.Controller, *host.Namespace, error) {
	c, err := host.Connect(ctx, j.Addr, j.SubNQN, j.options(queues))
	if err != nil {
		return nil, nil, err
	}
	list, err := c.Namespaces(ctx)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("nvmehost: %s has no namespace", j.SubNQN)
	}
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, list[0], nil
}
