// Package names has the names of numbers.
package names

import "fmt"

// Of is the i-th name of a type, or its number where it has none.
func Of(of string, names []string, i uint8) string {
	if int(i) < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", of, i)
}
