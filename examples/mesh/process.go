package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// A process is one process of the mesh: a server, and a client of all others.
type process struct {
	self, size int
	rnic       *iwarp.RNIC
	pd         *iwarp.PD // for the connections that it sets up; peers can access no memory in it

	keys, old, next *keys      // the current, the old and the future keys
	ring            *cm.Ring   // of the server
	rings           []*cm.Ring // of the client, by server
	auths           []*cm.Auth

	links []*link // by number; nil: there is none
	churn *churn  // nil: none is running

	mu     sync.Mutex
	seen   map[uint32][]int // by round and number: Writes whose data were right
	perKey map[uint64]int   // connections that were accepted
}

// commands are the commands that a process executes after start.
var commands = map[string]func(*process, context.Context, *command) (reply, error){
	"connect": (*process).connect,
	"write":   (*process).write,
	"seen":    (*process).report,
	"gone":    (*process).gone,
	"churn":   (*process).startChurn,
	"pass":    (*process).pass,
	"stop":    (*process).stopChurn,
	"accept":  (*process).acceptNewKey,
	"primary": (*process).useNewKey,
	"retire":  (*process).retireOldKey,
	"tryOld":  (*process).tryOldKey,
}

// An order is a command of the input, or the error with which the input has ended.
type order struct {
	command
	err error
}

// orders reads the input, also while a command is being executed, and calls end when the input ends: the program that has
// started the process may have been killed. The last order has the error.
func orders(in io.Reader, end func()) <-chan order {
	all := make(chan order)
	go func() {
		d := json.NewDecoder(in)
		for {
			var o order
			if o.err = d.Decode(&o.command); o.err != nil {
				end()
			}
			all <- o
			if o.err != nil {
				return
			}
		}
	}()
	return all
}

// obey is the program of a process: it executes the commands of its input until the input ends.
func obey(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	todo, replies := orders(in, cancel), json.NewEncoder(out)
	var p *process
	defer func() {
		if p != nil {
			_ = p.rnic.Close()
		}
	}()
	for {
		o := <-todo
		switch {
		case errors.Is(o.err, io.EOF):
			return nil
		case o.err != nil:
			return o.err
		}
		c := &o.command
		var r reply
		var err error
		do := commands[c.Do]
		switch {
		case c.Do == "start" && p == nil:
			p, r, err = start(ctx, c)
		case do == nil || p == nil:
			err = fmt.Errorf("the command %q makes no sense here", c.Do)
		default:
			r, err = do(p, ctx, c)
		}
		if err != nil {
			r.Err = err.Error()
		}
		if err := replies.Encode(&r); err != nil {
			return err
		}
	}
}

// start makes the process, and begins to listen.
func start(ctx context.Context, c *command) (*process, reply, error) {
	p := &process{
		self: c.Self, size: c.Size, keys: c.Keys, links: make([]*link, len(c.Keys.Clients)),
		seen: make(map[uint32][]int), perKey: make(map[uint64]int),
	}
	var err error
	if p.rnic, err = iwarp.Open(nil); err != nil {
		return nil, reply{}, err
	}
	if p.pd, err = p.rnic.AllocPD(); err != nil {
		return p, reply{}, err
	}
	for server := range p.links {
		if err := p.addServer(server); err != nil {
			return p, reply{}, err
		}
	}
	addr, err := p.listen(ctx, c.Addr)
	return p, reply{Addr: addr}, err
}

// addServer makes the Authenticator for connections to a server. Each server has its own, since
// each has its own key.
func (p *process) addServer(server int) error {
	if server == p.self {
		p.rings, p.auths = append(p.rings, nil), append(p.auths, nil)
		return nil
	}
	ring, err := cm.NewRing(p.keys.client(server))
	if err != nil {
		return err
	}
	auth, err := p.newClient(server, ring)
	p.rings, p.auths = append(p.rings, ring), append(p.auths, auth)
	return err
}

func (p *process) newClient(server int, ring *cm.Ring) (*cm.Auth, error) {
	return cm.New(&cm.Config{Ring: ring, ID: nameOf(p.self), ExpectServer: func(peer iwarp.Peer) error {
		if peer.Name != nameOf(server) {
			return fmt.Errorf("it is %q, and not process %d", peer.Name, server)
		}
		return nil
	}})
}

// others returns the processes that a command names by their addresses.
func (p *process) others(c *command) (others []int) {
	for i, addr := range c.Addrs {
		if i != p.self && addr != "" {
			others = append(others, i)
		}
	}
	return others
}

// acceptNewKey is the first step of a rotation: servers accept both keys.
func (p *process) acceptNewKey(_ context.Context, c *command) (reply, error) {
	p.next = c.Keys
	return reply{}, p.ring.Replace(p.keys.server(time.Time{}), p.next.server(time.Time{}))
}

// useNewKey is the second step, after all servers know the new key: clients use it.
func (p *process) useNewKey(context.Context, *command) (reply, error) {
	for server, ring := range p.rings {
		if ring == nil {
			continue
		}
		if err := ring.Replace(p.next.client(server)); err != nil {
			return reply{}, err
		}
	}
	p.old, p.keys, p.next = p.keys, p.next, nil
	return reply{}, nil
}

// retireOldKey is the third step, after all set-ups that began with the old key have ended.
func (p *process) retireOldKey(context.Context, *command) (reply, error) {
	return reply{}, p.ring.Replace(p.old.server(time.Now()), p.keys.server(time.Time{}))
}
