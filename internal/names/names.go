// Package names looks up the names of numbers.
package names

import "fmt"

// Of returns the name of n. If n has no name, it returns a text with the number, in the format unknown.
func Of[N ~uint8 | ~uint16](n N, names []string, unknown string) string {
	if int(n) < len(names) && names[n] != "" {
		return names[n]
	}
	return fmt.Sprintf(unknown, uint16(n))
}
