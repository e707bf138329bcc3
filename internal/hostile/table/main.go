// Command table writes docs/attacks.md: every known attack on the library, with the required outcome, the tests
// that try it, and planted defects that would let it through.
//
//	go run ./internal/hostile/table
//
// in the root of the module. The attacks are those of RFC 5042 sections 5 to 7, those of ReDMArk (USENIX Security
// 2021), and some more. They are data, in the files of this package. The tests of this command fail when a named
// test or defect does not exist, when a defect belongs to no test of its row, and when docs/attacks.md is stale.
package main

import (
	"fmt"
	"os"
)

const reportFile = "docs/attacks.md"

func main() {
	if err := os.WriteFile(reportFile, report(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}
