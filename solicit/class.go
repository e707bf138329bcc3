package solicit

import "github.com/goiwarp/iwarp/internal/names"

// A Class is how urgent an operation is. Each Class has its own queue.
type Class uint8

const (
	// Latency is for operations that something waits for. It is the zero value.
	Latency Class = iota
	// Bulk is for operations that are many or large.
	Bulk

	classes = 2
)

var classNames = [...]string{Latency: "latency", Bulk: "bulk"}

func (c Class) String() string { return names.Of(c, classNames[:], "class %d") }

// other returns the class with which c shares the window.
func (c Class) other() Class { return 1 - c }
