//go:build !linux

package peer

import (
	"errors"
	"syscall"
)

const DefaultCC = ""

// congestion refuses: only Linux lets a program choose.
func congestion(name string) func(network, address string, c syscall.RawConn) error {
	if name == "" {
		return nil
	}
	return func(string, string, syscall.RawConn) error {
		return errors.New("the congestion control cannot be chosen on this system")
	}
}
