package main

import (
	"context"
	"errors"
)

// A churn repeatedly sets up connections, uses them once, and ends them.
type churn struct {
	boundary chan struct{} // received from between two rounds
	stop     chan struct{} // closed: this round is the last
	ended    chan struct{} // closed; the rest may be read then

	rounds, setups, attempts int
	err                      error
}

var (
	errNoChurn  = errors.New("no churn is under way")
	errChurning = errors.New("a churn is under way")
)

func (p *process) startChurn(ctx context.Context, c *command) (reply, error) {
	if p.churn != nil {
		return reply{}, errChurning
	}
	ch := &churn{boundary: make(chan struct{}), stop: make(chan struct{}), ended: make(chan struct{})}
	p.churn = ch
	addrs := *c
	go func() {
		defer close(ch.ended)
		for !ch.isLast() && ch.err == nil {
			ch.err = p.churnOnce(ctx, &addrs, ch)
		}
	}()
	return reply{}, nil
}

// isLast reports, between two rounds, whether the last round has ended.
func (ch *churn) isLast() bool {
	select {
	case <-ch.boundary:
	default:
	}
	select {
	case <-ch.stop:
		return true
	default:
		return false
	}
}

// churnOnce performs one round. It retries nothing: a wrong refusal must be an error.
func (p *process) churnOnce(ctx context.Context, c *command, ch *churn) error {
	links, attempts, err := p.dial(ctx, c, nil)
	ch.attempts += attempts
	if err != nil {
		return err
	}
	err = p.writeAll(ctx, links, roundRotating, uint32(ch.rounds))
	if err == nil {
		ch.setups += len(links)
		ch.rounds++
	}
	return errors.Join(err, p.hangUp(ctx, links))
}

// pass returns when a whole round has been done since it was called. Set-ups that were running at
// that time have then ended.
func (p *process) pass(ctx context.Context, _ *command) (reply, error) {
	if p.churn == nil {
		return reply{}, errNoChurn
	}
	for range 2 {
		select {
		case p.churn.boundary <- struct{}{}:
		case <-p.churn.ended:
			return reply{}, errors.Join(errNoChurn, p.churn.err)
		case <-ctx.Done():
			return reply{}, context.Cause(ctx)
		}
	}
	return reply{}, nil
}

func (p *process) stopChurn(context.Context, *command) (reply, error) {
	ch := p.churn
	if ch == nil {
		return reply{}, errNoChurn
	}
	close(ch.stop)
	<-ch.ended
	p.churn = nil
	return reply{Setups: ch.setups, Attempts: ch.attempts, Rounds: ch.rounds}, ch.err
}
