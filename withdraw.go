package iwarp

import (
	"context"
	"errors"
	"fmt"
)

// withdrawal is how far the upper layer has got with taking a region back; see
// [MROptions.Withdraw]. The MR's mutex guards it.
type withdrawal uint8

const (
	withdrawIdle withdrawal = iota
	withdrawAsked
	withdrawDone
)

var errWithdrawing = errors.New("MROptions.Withdraw is at work")

// withdraw has the upper layer take the region back from its peers, before it is revoked.
func (mr *MR) withdraw(ctx context.Context) error {
	if mr.ask == nil {
		return nil
	}
	mr.mu.Lock()
	was := mr.withdrawal
	if was == withdrawIdle {
		mr.withdrawal = withdrawAsked
	}
	mr.mu.Unlock()
	switch was {
	case withdrawAsked:
		return errWithdrawing
	case withdrawDone:
		return nil
	case withdrawIdle:
	}
	after := withdrawIdle
	defer func() { // also if it panics
		mr.mu.Lock()
		mr.withdrawal = after
		mr.mu.Unlock()
	}()
	if err := mr.ask(ctx, mr); err != nil {
		return fmt.Errorf("MROptions.Withdraw: %w", err)
	}
	after = withdrawDone
	return nil
}
