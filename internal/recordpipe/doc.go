// Package recordpipe provides an in-memory LLP that keeps the boundaries of segments and may reorder
// them, for tests of the layers above. It does only what RFC 5041 requires of any lower layer, so
// that those layers do not come to depend on further properties of MPA.
package recordpipe
