// Package wire is the messages of one-sided operations, as octets: twelve of them, each of a
// length of its own.
//
//	 0  version 1 | 1 type | 2 class | 3 flags, 0
//	 4  length of the message, 16 bits | 6 reserved, 16 bits
//	 8  number of the message, 64 bits
//	16  operation, 64 bits: slot 16, sequence 48
//	24  body
//	    outer tag, 16 octets
//
// The outer tag is under the key of the connection, and is of all octets before it. The bodies
// of OPEN_REP and REKEY_REQ end in a part that is encrypted with it. Requests for an operation
// have an inner tag besides, under the key of the client, of all octets before it.
//
// A message is made by its Append method, tags included. One that has come is opened by [Open],
// which tells its type, and then read by its Parse method. [CheckInner] checks the inner tag.
// Errors of Open and Parse end the stream; those of CheckInner concern the operation alone.
//
// In suite 0 nothing is encrypted: both tags are zero, and no keys are sent.
//
// Reserved octets are zero in what Append makes, and Parse does not look at them.
package wire
