package commit

import (
	"runtime/debug"

	"github.com/goiwarp/iwarp/stag"
)

// caught, deferred, turns a panic of a method of the user's into its error. What the method has done is not known, so
// that the error is DataLost.
func caught(method string, err *error) {
	if v := recover(); v != nil {
		*err = &Error{Status: MakeStatus(NoRegion, DataLost), Err: &stag.PanicError{Method: method, Value: v, Stack: debug.Stack()}}
	}
}
