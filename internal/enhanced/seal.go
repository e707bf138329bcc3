package enhanced

import "github.com/goiwarp/iwarp/transport"

// A Seal puts the private data of the ULP into a start-up frame of MPA, or a control message of
// SCTP. The zero value adds nothing and changes nothing.
type Seal struct {
	Overhead int                                     // octets that Wrap adds
	Wrap     func(start, app []byte) ([]byte, error) // see [transport.Sealer]; nil: the zero value
}

// Sealing returns the seal of a message that requests or accepts a connection. s may be nil.
func Sealing(s transport.Sealer) Seal {
	if s == nil {
		return Seal{}
	}
	return Seal{Overhead: s.Overhead(), Wrap: s.Wrap}
}

// Refusing returns the seal of a message that refuses a connection because of cause. s may be nil.
func Refusing(s transport.Sealer, cause error) Seal {
	if s == nil {
		return Seal{}
	}
	return Seal{Overhead: s.RefuseLen(cause), Wrap: func(start, app []byte) ([]byte, error) {
		return s.Refuse(start, app, cause)
	}}
}
