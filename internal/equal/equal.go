// Package equal compares values of the application, which may be of any type.
package equal

import "reflect"

// Values reports whether a == b. A value of a type for which == panics is not equal to any value.
func Values(a, b any) bool { return reflect.ValueOf(a).Comparable() && a == b }
