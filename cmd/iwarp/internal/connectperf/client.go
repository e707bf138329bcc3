package connectperf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// An order says what a client process measures: the points in turn, repeatedly. It comes from
// stdin, and the samples go to stdout, one after the other.
type order struct {
	Points  []point
	Repeats int
}

// warmUp is how many connections are set up before a point is measured for the first time.
const warmUp = 64

// settleFrom is the number of connections from which on the processor time is measured until settled
// later: a QP does some more work some time after its set-up. With fewer connections the time has no
// significance.
const settleFrom = 256

const settled = 400 * time.Millisecond

// A client is the process that measures.
type client struct {
	rnic    *iwarp.RNIC
	pd      *iwarp.PD
	addrs   map[string]string
	control net.Conn
	in      *bufio.Reader
	configs map[string]*iwarp.QPConfig
}

func runClient(ctx context.Context, addr string, stdin io.Reader, stdout io.Writer) error {
	var o order
	if err := json.NewDecoder(stdin).Decode(&o); err != nil {
		return err
	}
	c, err := newClient(addr)
	if err != nil {
		return err
	}
	defer c.close()
	for _, p := range o.Points {
		p.N = min(p.N, warmUp)
		if _, err := c.measure(ctx, p); err != nil {
			return err
		}
	}
	out := json.NewEncoder(stdout)
	for range o.Repeats {
		for _, p := range o.Points {
			s, err := c.measure(ctx, p)
			if err != nil {
				return fmt.Errorf("%v: %w", p, err)
			}
			if err := out.Encode(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func newClient(addr string) (c *client, err error) {
	c = &client{configs: make(map[string]*iwarp.QPConfig)}
	if c.control, err = peer.Dial(addr, ""); err != nil {
		return nil, err
	}
	c.in = bufio.NewReader(c.control)
	if err := c.hear(&c.addrs); err != nil {
		return nil, err
	}
	if c.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	c.pd, err = c.rnic.AllocPD()
	return c, err
}

func (c *client) close() {
	_ = c.rnic.Close() // the process ends
	_ = c.control.Close()
}

func (c *client) hear(v any) error {
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// ask requests the usage of the server.
func (c *client) ask(say string) (u usage, err error) {
	if _, err := fmt.Fprintln(c.control, say); err != nil {
		return u, err
	}
	if err := c.hear(&u); err != nil {
		return u, err
	}
	if u.Failed > 0 {
		return u, fmt.Errorf("%d set-ups have failed at the server", u.Failed)
	}
	return u, nil
}

// config returns the configuration of QPs with an authentication.
func (c *client) config(auth string) (*iwarp.QPConfig, error) {
	if qc := c.configs[auth]; qc != nil {
		return qc, nil
	}
	qc := &iwarp.QPConfig{PD: c.pd}
	c.configs[auth] = qc
	return qc, authmode.Initiate(auth, qc)
}

// measure sets the connections of a point up, and ends them.
func (c *client) measure(ctx context.Context, p point) (s *sample, err error) {
	r, err := c.newRun(p)
	if err != nil {
		return nil, err
	}
	peer.KeptMemory()
	if _, err := c.ask(sayClear); err != nil {
		return nil, err
	}
	before, err := c.ask(sayUsage)
	if err != nil {
		return nil, err
	}
	peer.ForgetPeak()
	watch := watchGoroutines()
	cpu, began := peer.CPU(), time.Now()
	err = r.up(ctx)
	s = &sample{point: p, Total: time.Since(began)}
	s.Goroutines = watch.stop()
	if err == nil && p.N >= settleFrom {
		time.Sleep(settled)
	}
	s.Client = peer.CPU() - cpu
	s.Peak = peer.ResidentMemory().Peak
	after, uerr := c.ask(sayUsage)
	s.Server, s.ServerPeak = after.CPU-before.CPU, after.Peak
	s.Kept = peer.KeptMemory().RSS
	if err == nil { // otherwise there may be no connection
		s.P50, s.P99 = stats.Quantile(r.ready, 50), stats.Quantile(r.ready, 99)
		s.Read, err = r.read(ctx)
	}
	began = time.Now()
	derr := r.down(ctx)
	s.Close = time.Since(began)
	return s, errors.Join(err, uerr, derr)
}
