package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"

	"github.com/goiwarp/iwarp/transport"
)

// CheckConn finds out whether c, of which what is to be made, is no connection: nil, or a nil
// pointer of a type that implements net.Conn.
func CheckConn(what string, c net.Conn) error {
	if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("iwarp: %s: the net.Conn is nil", what)
	}
	return nil
}

// NetworkOf is the network of an address, empty if there is none: a net.Conn of the program may not
// know its own.
func NetworkOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.Network()
}

var errUnfinished = errors.New("the set-up was ended by a panic, or runtime.Goexit, of the program")

// OrUndo calls f, and undo with the error if f fails, or does not return: what it calls of the program, such as Local.Prepare, may panic.
func OrUndo(undo func(err error), f func() error) (err error) {
	err = errUnfinished
	defer func() {
		if err != nil {
			undo(err)
		}
	}()
	return f()
}

// LocalFailure is what a side says that cannot go on although the negotiation has
// succeeded, because ctx, that of the exchange, has ended (RFC 6581 section 9.3). It is nil
// while ctx has not.
func LocalFailure(ctx context.Context) *transport.Fault {
	if ctx.Err() == nil {
		return nil
	}
	return &transport.Fault{Code: transport.MPALocalCatastrophic, Err: context.Cause(ctx)}
}
