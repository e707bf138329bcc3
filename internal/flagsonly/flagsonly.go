// Package flagsonly parses the command line of programs that take flags and no arguments.
package flagsonly

import (
	"flag"
	"fmt"
	"os"
)

// Parse parses the flags of the program, and ends it with status 2 if there is an argument: flags after an argument would
// be ignored.
func Parse(program string) {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: %q: there are no arguments\n", program, flag.Args())
		os.Exit(2)
	}
}

// Main parses the flags like Parse, and runs the program. It ends the program with status 2 if check finds the flags wrong, and
// with status 1 if run fails.
func Main(program string, check, run func() error) {
	Parse(program)
	if err := check(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
}
