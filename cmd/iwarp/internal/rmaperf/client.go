package rmaperf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

// clientConfig returns a configuration in which no operation waits for anything but the server.
func clientConfig(sealed bool, maxOp int) (rma.ClientConfig, error) {
	window, err := rma.NewSolicitor(solicit.Config{Fixed: ample})
	return rma.ClientConfig{
		Insecure: !sealed, MaxOp: maxOp, OpTimeout: 10 * time.Second,
		Dispatch: [2]time.Duration{-1, -1}, ScratchLimit: 2 * ample, Solicitor: window,
	}, err
}

// newClient makes an rma.Client on a connection.
func newClient(ctx context.Context, s side, c net.Conn, sealed, crc bool, cfg rma.ClientConfig) (*rma.Client, error) {
	setup, stop := context.WithTimeout(ctx, peer.Timeout)
	defer stop()
	qc := iwarp.QPConfig{PD: s.pd, MPA: iwarp.MPAOptions{NoCRC: !crc}}
	if err := authmode.Initiate(authOf(sealed), &qc); err != nil {
		return nil, err
	}
	if err := rma.Prepare(s.rnic, &qc, 0, depth); err != nil {
		return nil, err
	}
	qp, err := s.rnic.Client(setup, c, &qc)
	if err != nil {
		_ = qc.SendCQ.Close() // nothing else uses it
		return nil, err
	}
	cfg.PD = s.pd
	return rma.NewClient(setup, qp, &cfg)
}

// allRights are the rights that a client requests.
const allRights = rma.MayRead | rma.MayWrite | rma.MayManage

// An end is a connection to an rma server, with a Portal.
type end struct {
	side

	ctx    context.Context
	client *rma.Client
	portal *rma.Portal
	one    [1]rma.Completion
}

// dialEnd connects to a service, with a Portal of that many slots.
func dialEnd(ctx context.Context, addr string, what *service, cfg rma.ClientConfig, slots int) (*end, error) {
	c, err := peer.Dial(addr, peer.DefaultCC)
	if err != nil {
		return nil, err
	}
	return newEnd(ctx, c, what, cfg, slots)
}

func newEnd(ctx context.Context, c net.Conn, what *service, cfg rma.ClientConfig, slots int) (e *end, err error) {
	e = &end{ctx: ctx}
	if e.side, err = newSide(); err != nil {
		return nil, err
	}
	if e.client, err = newClient(ctx, e.side, c, what.Sealed, what.CRC, cfg); err != nil {
		return nil, errors.Join(err, e.rnic.Close())
	}
	if want := map[bool]uint8{true: 1}[what.Sealed]; e.client.Suite() != want {
		return nil, fmt.Errorf("suite %d was agreed on, not %d", e.client.Suite(), want)
	}
	e.portal, err = e.client.Portal(slots)
	return e, err
}

// open opens a region with all rights.
func (e *end) open(number uint64) (*rma.Handle, error) {
	return e.client.Open(e.ctx, number, allRights)
}

// does does one operation, the only one of the Portal at that time, and returns how long it took and how it ended.
func (e *end) does(cmd rma.Command) (took time.Duration, failed, err error) {
	began := time.Now()
	if _, err := e.portal.Post(cmd); err != nil {
		return 0, nil, err
	}
	if _, err := e.portal.Wait(e.ctx, e.one[:]); err != nil {
		return 0, nil, err
	}
	return time.Since(began), e.one[0].Err, nil
}

func (e *end) close() error {
	_ = e.client.Close() // it does not fail
	return e.rnic.Close()
}

// A portalArm does operations through a Portal.
type portalArm struct {
	*end

	cmds []rma.Command // one for each operation that may be outstanding
	ends []rma.Completion
	next []rma.Command // commands that replace completed ones
}

// newPortalArm returns an arm for operations like cmd of size octets on region 1, as many outstanding as the Portal of e has slots.
// Each operation has octets of its own on both sides.
func newPortalArm(e *end, cmd rma.Command, slots, size int) (a *portalArm, err error) {
	if cmd.Handle, err = e.open(1); err != nil {
		return nil, err
	}
	a = &portalArm{end: e, ends: make([]rma.Completion, slots)}
	for i := range slots {
		cmd.Off, cmd.Buf, cmd.Tag = uint64(i*size), peer.SourceOf(size), uint64(i)
		a.cmds = append(a.cmds, cmd)
	}
	return a, nil
}

// run keeps all slots in use until n operations are done.
func (a *portalArm) run(n int) error {
	begun := min(n, len(a.cmds))
	if _, err := a.portal.PostAll(a.cmds[:begun], nil); err != nil {
		return err
	}
	for done := 0; done < n; {
		k, err := a.portal.Wait(a.ctx, a.ends)
		if err != nil {
			return err
		}
		done += k
		a.next = a.next[:0]
		for _, e := range a.ends[:k] {
			if e.Err != nil {
				return e.Err
			}
			if begun < n {
				begun++
				a.next = append(a.next, a.cmds[e.Tag])
			}
		}
		if _, err := a.portal.PostAll(a.next, nil); err != nil {
			return err
		}
	}
	return nil
}

// An executorArm reads blocks by an Executor, some of them at a time.
type executorArm struct {
	*end

	executor *rma.Executor
	handle   *rma.Handle
	blocks   [][]byte
}

func newExecutorArm(e *end, blocks, size int) (*executorArm, error) {
	h, err := e.open(1)
	if err != nil {
		return nil, err
	}
	a := &executorArm{end: e, executor: rma.NewExecutor(e.portal), handle: h}
	for range blocks {
		a.blocks = append(a.blocks, peer.SourceOf(size))
	}
	return a, nil
}

// run reads n blocks.
func (a *executorArm) run(n int) error {
	errs := make([]error, len(a.blocks))
	var all sync.WaitGroup
	for i, b := range a.blocks {
		all.Go(func() {
			for k := i; k < n && errs[i] == nil; k += len(a.blocks) {
				_, errs[i] = a.executor.ReadAt(a.ctx, a.handle, b, int64(i*len(b)))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
