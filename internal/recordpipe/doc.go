// Package recordpipe is an LLP in memory that keeps the boundaries of segments and may reorder
// them, for the tests of the layers above. What RFC 5041 asks of any lower layer it does, and no
// more, so that those layers do not come to depend on what MPA does besides.
package recordpipe
