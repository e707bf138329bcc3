// Package measure computes the numbers by which the structure of the module is judged: calls between the
// files of a package, lengths of functions and files, atomic variables of a connection, and words. The
// program internal/arch/shape prints the numbers; the tests of internal/arch enforce them.
package measure
