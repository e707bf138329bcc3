package iwarp

import (
	"context"
	"errors"
	"fmt"
)

var errWithdrawing = errors.New("MROptions.Withdraw is in progress")

// withdraw calls MROptions.Withdraw, if there is one, before the region is revoked.
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
