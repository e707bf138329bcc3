// Package arch holds the shape of the module by tests: who may import whom, which
// packages do no IO, and a few rules of the house. It has no code of its own.
package arch
