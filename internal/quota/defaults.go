package quota

import (
	"fmt"
	"reflect"
)

// A Range is the range of values that a field may have.
type Range struct {
	Name        string
	Value       *int
	Default     int // of 0, unless it is more than Most
	Least, Most int
}

// Within sets the defaults of the fields, and checks their values. The error for a value that is
// too large matches limit.
func Within(limit error, fields []Range) error {
	for _, f := range fields {
		if *f.Value == 0 {
			*f.Value = min(f.Default, f.Most)
		}
		switch v := *f.Value; {
		case v < f.Least:
			return fmt.Errorf("iwarp: %s is %d, less than %d", f.Name, v, f.Least)
		case v > f.Most:
			return fmt.Errorf("%w: %s is %d, at most %d", limit, f.Name, v, f.Most)
		}
	}
	return nil
}

// Defaults replaces each field of limits that is 0 by the same field of def. It refuses negative
// fields. All fields of a T must be ints.
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

// Negative returns an error that names the first field of a structure whose value is a negative number, nil if there is none.
// It does not examine fields that are structures or arrays.
func Negative(name string, config any) error {
	v := reflect.ValueOf(config)
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInt() && f.Int() < 0 || f.CanFloat() && f.Float() < 0 {
			return fmt.Errorf("%s.%s is negative: %v", name, v.Type().Field(i).Name, f)
		}
	}
	return nil
}
