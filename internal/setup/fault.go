package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"

	"github.com/goiwarp/iwarp/transport"
)

// CheckConn returns an error if c, which the operation what is to use, is nil, or a nil pointer of a
// type that implements net.Conn.
func CheckConn(what string, c net.Conn) error {
	if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("iwarp: %s: the net.Conn is nil", what)
	}
	return nil
}

// NetworkOf returns the network of an address, or "" if a is nil: a net.Conn of the application may
// not know its own address.
func NetworkOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.Network()
}

var errUnfinished = errors.New("the set-up was ended by a panic, or runtime.Goexit, of the program")

// OrUndo calls f. If f fails or does not return, it calls undo with the error: functions of the application that f calls, such as
// Local.Prepare, may panic.
func OrUndo(undo func(err error), f func() error) (err error) {
	err = errUnfinished
	defer func() {
		if err != nil {
			undo(err)
		}
	}()
	return f()
}

// LocalFailure returns the fault that a side reports if the negotiation has succeeded but it
// cannot continue, because the exchange's context ctx has ended (RFC 6581 section 9.3). It
// returns nil if ctx has not ended.
func LocalFailure(ctx context.Context) *transport.Fault {
	if ctx.Err() == nil {
		return nil
	}
	return &transport.Fault{Code: transport.MPALocalCatastrophic, Err: context.Cause(ctx)}
}
