// Package measure counts what the structure of the module is judged by: calls between the files
// of a package, lengths of functions and files, atomic variables of a connection, and words. The
// program internal/arch/shape prints the numbers; the tests of internal/arch hold them.
package measure
