package quota

import "fmt"

// Depth checks the depth of a queue against its maximum. The error for a queue that is too deep matches limit.
func Depth(limit error, queue string, depth, most int) error {
	switch {
	case depth < 1:
		return fmt.Errorf("iwarp: %s of depth %d, less than 1", queue, depth)
	case depth > most:
		return fmt.Errorf("%w: %s of depth %d, at most %d", limit, queue, depth, most)
	}
	return nil
}
