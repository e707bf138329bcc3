// Package plan decides how the octets of a call come together from what is inline and what is in chunks, and where
// the octets of a reply go (RFC 8166 section 3). It moves none of them.
package plan
