package iwarp

import (
	"context"
	"errors"
	"fmt"
)

var errWithdrawing = errors.New("MROptions.Withdraw is at work")

// withdraw has the upper layer take the region back from its peers, before it is revoked.
func (mr *MR) withdraw(ctx context.Context) error {
	if mr.ask == nil {
		return nil
	}
	return mr.withdrawn.Do(errWithdrawing, func() error {
		if err := mr.ask(ctx, mr); err != nil {
			return fmt.Errorf("MROptions.Withdraw: %w", err)
		}
		return nil
	})
}
