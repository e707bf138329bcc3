package op

import "time"

// A Do is what the caller of a machine is to do.
type Do uint8

// The actions of both machines.
const (
	// Enqueue asks the window of this side for N octets of Class. The caller then calls Granted,
	// Expired or Refused, once.
	Enqueue Do = iota
	// Cancel removes the operation from the queue of the window. If it was granted meanwhile, the
	// caller calls Granted nevertheless, and gets a Release.
	Cancel
	// Hold notes that the operation has timed out, and that its grant counts until Release.
	Hold
	// Release returns the grant, with Refund. It comes once for each call of Granted.
	Release
	// Revoke makes the STag of the operation invalid. A sink with memory of its own stays valid until the message that
	// names it was sent, and for the time Linger after that. The caller calls Revoked, once, when the STag is invalid,
	// nothing is placed or read through it any more, and all messages that came before were passed to
	// Receive. A source that the server reads has no STag of its own: if its RDMA Read has completed, the caller calls
	// Pulled first.
	Revoke
	// OpenData opens the blob in the sink of the operation, which is dead, in place; at the
	// client it also copies the contents to the caller's buffer. In suite 0 there is only that
	// copy. The caller then calls Opened, once.
	OpenData
	// SendStatus sends a STATUS with Outcome and Reason. With Invalidate it invalidates the STag that
	// the peer has named. Record is NoRecord if there is none.
	SendStatus
	// Free notes that nothing of the operation is left, so its memory may be used again.
	Free
	// End ends the connection for Why. The caller calls Lost when it is gone.
	End
)

// The actions of a Client.
const (
	// SendRequest enables the sink of a read, or the source of a write that has one, and sends the
	// request. If there is no memory for that source the caller calls Unsent instead.
	SendRequest Do = 32 + iota
	// Seal seals the buffer of a write, with the salt of the PULL. The caller then calls Sealed, or Unsent if
	// there is no memory for the blob, once. In suite 0 the blob is a plain copy.
	Seal
	// SendData writes the blob to the sink of the PULL, and sends DATA, which invalidates it.
	SendData
	// Complete reports Outcome, Reason and RetryAfter to the application. The slot of Op is free.
	// With Gone, the Outcome is Timeout because the connection is gone.
	Complete
)

// The actions of a Server.
const (
	// Serve makes the answer to a request: it seals octets of the region for a Read, asks whether
	// the client may Open, or does the Rekey. The caller then calls Served, once.
	Serve Do = 64 + iota
	// SendAnswer sends the answer: a blob and READ_DONE, which invalidates the sink of the client;
	// OPEN_REP; REKEY_DONE; or WRITE_DONE, which invalidates the source if there is one.
	SendAnswer
	// SendPull makes a fresh salt, enables a sink and sends PULL. With Source it sends a PULL that
	// names no sink, directly followed by an RDMA Read of the source; the caller calls Pulled when
	// the RDMA Read has completed.
	SendPull
	// Copy copies the octets that were opened, or read from the source, to the region, under its lock, but
	// only if the clock, read under the lock, shows less than Before. The caller then calls Copied, once.
	Copy
	// Audit records Why for the operation. Record is NoRecord if there is none.
	Audit
)

// NoRecord is the record of an action for an operation that has none.
const NoRecord = -1

// An Action is something that the caller is to do. Do determines which fields are set.
type Action struct {
	Do     Do
	Op     ID
	Record int
	Kind   Kind
	Class  Class
	Source bool

	N      int64  // of Enqueue
	Refund Refund // of Release

	// Of SendStatus and Complete.
	Outcome    Outcome
	Reason     Reason
	RetryAfter time.Duration
	Invalidate bool
	Gone       bool

	Before time.Time // of Copy
	Why    Why       // of End and Audit
}

// A Why is a reason to end a connection, or to record something.
type Why uint8

// The reasons to end a connection.
const (
	// NotFirst: the first message was not HELLO, or there was a second one.
	NotFirst Why = 1 + iota
	// NoHello: the HELLO of the peer did not come in time.
	NoHello
	// Unexpected: a message for no operation, or for one that is not in a state for it.
	Unexpected
	// Contradiction: a message that contradicts its operation, in a length, salt or STag.
	Contradiction
	// OverCredit: more unanswered requests than credits.
	OverCredit
	// OverMaxOp: a request for more octets than agreed.
	OverMaxOp
	// SameID: a request with the ID of an operation that has not ended.
	SameID
	// NeverPulled: DATA for an operation that was not pulled.
	NeverPulled
	// TooManyFailures: requests with wrong keys, faster than the limit.
	TooManyFailures
	// NotRead: the RDMA Read of a source that has not completed in time.
	NotRead
)

// The reasons to record something.
const (
	// AuthFailure: a request, or data, with a wrong key.
	AuthFailure Why = 64 + iota
	// LateCommit: a copy that began in time has ended so late that the client may have given up.
	LateCommit
)
