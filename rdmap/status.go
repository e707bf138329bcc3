package rdmap

import "github.com/goiwarp/iwarp/internal/names"

// A Status is how a request ended. The numbers are those of ibv_wc_status.
type Status uint8

// The statuses.
const (
	StatusSuccess         Status = 0
	StatusLocalLength     Status = 1  // a message was too long for its receive
	StatusLocalOp         Status = 2  // the stream cannot do this (a Read with ORD 0), or its source or sink, a Buffer, failed
	StatusLocalProtection Status = 4  // a region was invalidated before its use
	StatusFlushed         Status = 5  // the stream ended first
	StatusBind            Status = 6  // a bind, a registration or a local invalidate was refused
	StatusBadResponse     Status = 7  // the response did not match the request
	StatusLocalAccess     Status = 8  // the receive's region was invalidated
	StatusRemoteInvalid   Status = 9  // the peer did not accept the request
	StatusRemoteAccess    Status = 10 // the peer's memory does not permit the access
	StatusRemoteOp        Status = 11 // the peer failed to perform it
	StatusNoReceive       Status = 13 // the peer had no receive posted
	StatusTimeout         Status = 20 // it was not dispatched in time, and nothing of it was sent
)

var statusNames = [...]string{
	StatusSuccess:         "success",
	StatusLocalLength:     "local length error",
	StatusLocalOp:         "local operation error",
	StatusLocalProtection: "local protection error",
	StatusFlushed:         "flushed",
	StatusBind:            "bind or invalidate error",
	StatusBadResponse:     "bad response",
	StatusLocalAccess:     "local access error",
	StatusRemoteInvalid:   "remote invalid request",
	StatusRemoteAccess:    "remote access error",
	StatusRemoteOp:        "remote operation error",
	StatusNoReceive:       "no receive posted by the peer",
	StatusTimeout:         "dispatch timeout",
}

func (s Status) String() string { return names.Of(s, statusNames[:], "Status(%d)") }
