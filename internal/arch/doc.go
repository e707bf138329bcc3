// Package arch holds the shape of the module by tests: the import graph, the
// packages that do no IO, rules of the house, the length of functions, and words that are not to be used.
// It has no code of its own: package measure counts, and the program shape prints what is counted.
//
// Numbers that are to fall stand in testdata, as records that may not be exceeded:
//
//	go test ./internal/arch -update     # lowers the records to what is counted now
package arch
