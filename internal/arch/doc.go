// Package arch holds the shape of the module by tests: the import graph, the
// packages that do no IO, rules of the project, the length of functions, and words that must not be used.
// It has no code of its own: package measure counts, and the program shape prints the counts.
//
// Numbers that should fall are recorded in testdata, and must not be exceeded:
//
//	go test ./internal/arch -update     # lowers the records to what is counted now
package arch
