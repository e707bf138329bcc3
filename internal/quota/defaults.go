package quota

import (
	"fmt"
	"reflect"
)

// Defaults replaces each field of limits that is 0 by that of def. It refuses a negative one. All
// fields of a T are ints.
func Defaults[T any](name string, limits, def *T) error {
	v, d := reflect.ValueOf(limits).Elem(), reflect.ValueOf(def).Elem()
	for i := range v.NumField() {
		switch n := v.Field(i).Int(); {
		case n < 0:
			return fmt.Errorf("iwarp: %s.%s is negative: %d", name, v.Type().Field(i).Name, n)
		case n == 0:
			v.Field(i).Set(d.Field(i))
		}
	}
	return nil
}
