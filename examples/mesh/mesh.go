package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A mesh holds all processes, and the results.
type mesh struct {
	n, size  int
	children []*child // by number; nil: the process is away
	addrs    []string // by number
	keys     *generation
	done     []row
	out      io.Writer
}

func newMesh(n, size int, out io.Writer) *mesh {
	return &mesh{n: n, size: size, children: make([]*child, n), addrs: make([]string, n), keys: newGeneration(1, n), out: out}
}

// run goes through all phases, and prints the results up to the end or to the first failure.
func (m *mesh) run(ctx context.Context) (err error) {
	defer func() {
		for _, c := range m.children {
			if c != nil {
				c.kill()
			}
		}
	}()
	defer func() { err = errors.Join(err, m.print()) }()
	for _, phase := range []func(context.Context) error{m.begin, m.rotate, m.loseOne, m.takeBack} {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	for i, c := range m.children {
		m.children[i] = nil
		if err := c.leave(); err != nil {
			return fmt.Errorf("process %d does not end as it should: %w", i, err)
		}
	}
	return nil
}

// each sends a command to each of these processes, all at the same time. It returns the replies by number.
func (m *mesh) each(numbers []int, cmd func(number int) command) ([]reply, error) {
	replies, errs := make([]reply, m.n), make([]error, m.n)
	var all sync.WaitGroup
	for _, i := range numbers {
		all.Go(func() {
			c := cmd(i)
			replies[i], errs[i] = m.children[i].do(&c)
		})
	}
	all.Wait()
	return replies, errors.Join(errs...)
}

// present returns the processes that are not away.
func (m *mesh) present() (numbers []int) {
	for i, c := range m.children {
		if c != nil {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// say sends the same command to all processes that are present.
func (m *mesh) say(do string) ([]reply, error) {
	return m.each(m.present(), func(int) command { return command{Do: do, Addrs: m.addrs} })
}

// add starts a process, which listens at addr.
func (m *mesh) add(ctx context.Context, number int, addr string) error {
	c, err := spawn(ctx, number)
	if err != nil {
		return err
	}
	m.children[number] = c
	r, err := c.do(&command{Do: "start", Self: number, Size: m.size, Addr: addr, Keys: m.keys.of(number)})
	m.addrs[number] = r.Addr
	return err
}

// begin starts all processes, and connects each to all others.
func (m *mesh) begin(ctx context.Context) error {
	for i := range m.n {
		if err := m.add(ctx, i, "127.0.0.1:0"); err != nil {
			return err
		}
	}
	replies, err := m.say("connect")
	if err != nil {
		return err
	}
	return m.write("each connects to all", roundConnected, sum(replies))
}

// rotate replaces the keys while connections are being set up.
func (m *mesh) rotate(context.Context) error {
	old := m.keys
	m.keys = newGeneration(old.id+1, m.n)
	accept := func(number int) command { return command{Do: "accept", Keys: m.keys.of(number)} }
	steps := []func() ([]reply, error){
		func() ([]reply, error) { return m.say("churn") },
		func() ([]reply, error) { return m.each(m.present(), accept) },
		func() ([]reply, error) { return m.say("primary") },
		func() ([]reply, error) { return m.say("retire") },
	}
	for _, step := range steps {
		if _, err := step(); err != nil {
			return err
		}
		if _, err := m.say("pass"); err != nil {
			return err
		}
	}
	replies, err := m.say("stop")
	if err != nil {
		return err
	}
	done := sum(replies)
	wanted := func(from int) int { return replies[from].Rounds }
	if err := m.verify("keys are rotated meanwhile", roundRotating, done, wanted); err != nil {
		return err
	}
	if _, err := m.say("tryOld"); err != nil {
		return err
	}
	m.refused("the old key is tried", m.pairs())
	return m.write("connections from before", roundRotated, reply{})
}

// loseOne kills the last process.
func (m *mesh) loseOne(context.Context) error {
	last := m.n - 1
	m.children[last].kill()
	m.children[last] = nil
	gone := func(int) command { return command{Do: "gone", Peer: last} }
	if _, err := m.each(m.present(), gone); err != nil {
		return err
	}
	return m.write("one is killed", roundAway, reply{})
}

// takeBack restarts the process that is away, at the same address and with only the new keys.
// Meanwhile the others try to connect to it.
func (m *mesh) takeBack(ctx context.Context) error {
	last := m.n - 1
	others := m.present()
	onlyLast := make([]string, m.n)
	onlyLast[last] = m.addrs[last]
	var replies []reply
	var connectErr error
	connected := make(chan struct{})
	go func() {
		defer close(connected)
		replies, connectErr = m.each(others, func(int) command { return command{Do: "connect", Addrs: onlyLast} })
	}()
	err := m.add(ctx, last, onlyLast[last])
	if err != nil { // the others would try for ever
		for _, i := range others {
			_ = m.children[i].cmd.Process.Kill()
		}
	}
	<-connected
	if err := errors.Join(err, connectErr); err != nil {
		return err
	}
	r, err := m.children[last].do(&command{Do: "connect", Addrs: m.addrs})
	if err != nil {
		return err
	}
	return m.write("it is back", roundBack, sum(append(replies, r)))
}
