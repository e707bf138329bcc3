package wiretest

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// NameOf returns the name of a test function, for a suite that runs it again.
func NameOf(test func(*testing.T)) string {
	name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}
