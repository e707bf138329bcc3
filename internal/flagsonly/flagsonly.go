// Package flagsonly is the command line of programs that take flags and no arguments.
package flagsonly

import (
	"flag"
	"fmt"
	"os"
)

// Parse parses the flags of the program, and ends it with status 2 if there is an argument: flags behind one would not be
// looked at.
func Parse(program string) {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: %q: there are no arguments\n", program, flag.Args())
		os.Exit(2)
	}
}
