// Package wire encodes and decodes the messages of one-sided operations. There are twelve types,
// each of a fixed length.
//
//	 0  version 1 | 1 type | 2 class | 3 flags, 0
//	 4  length of the message, 16 bits | 6 reserved, 16 bits
//	 8  number of the message, 64 bits
//	16  operation, 64 bits: slot 16, sequence 48
//	24  body
//	    outer tag, 16 octets
//
// The outer tag covers all octets before it, under the key of the connection. The bodies of
// OPEN_REP and REKEY_REQ end in a part that is encrypted with it. READ_REQ, WRITE_REQ and REKEY_REQ
// also have an inner tag, which covers all octets before it, under the key of the client.
//
// An Append method makes a message, tags included. [Open] opens a received message and returns its
// header with the type; then its Parse method reads the body. [CheckInner] checks the inner tag.
// Errors of Open and Parse end the stream; errors of CheckInner concern only the operation.
//
// In suite 0 nothing is encrypted: both tags are zero, and no keys are sent.
//
// Append sets reserved octets to zero, and Parse ignores them.
package wire
