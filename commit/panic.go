package commit

import (
	"runtime/debug"

	"github.com/goiwarp/iwarp/stag"
)

// caught, deferred, turns a panic of a user's method into its error. What the method has done is unknown, so the
// error is DataLost.
func caught(method string, err *error) {
	if v := recover(); v != nil {
		*err = &Error{Status: MakeStatus(NoRegion, DataLost), Err: &stag.PanicError{Method: method, Value: v, Stack: debug.Stack()}}
	}
}
