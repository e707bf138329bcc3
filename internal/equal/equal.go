// Package equal compares values of a program, which may be of any type.
package equal

import "reflect"

// Values reports whether a == b. Values of a type for which == panics are not equal to any.
func Values(a, b any) bool { return reflect.ValueOf(a).Comparable() && a == b }
