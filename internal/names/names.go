// Package names has the names of numbers.
package names

import "fmt"

// Of is the name of n, or a text with its number where it has none: unknown is the format of that.
func Of[N ~uint8 | ~uint16](n N, names []string, unknown string) string {
	if int(n) < len(names) && names[n] != "" {
		return names[n]
	}
	return fmt.Sprintf(unknown, uint16(n))
}
