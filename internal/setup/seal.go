package setup

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// A Sealer authenticates the set-up of one connection, from the responder's side.
type Sealer interface {
	transport.Sealer
	// Close is called once, if there will be no connection. From the call of Establish on the
	// Sealer is that of the connection.
	Close()
}

// An Arrival is what is known of a connection whose Request has come, and is not believed yet.
type Arrival struct {
	Network       string
	Local, Remote net.Addr
	MaxPrivate    int // octets of private data that a Reply has room for, if its options allow them
}

// refuseTime is how long the refusal of a Request that is not believed may take to leave.
const refuseTime = time.Second

// maxInReply is how long the private data of a Reply may be with the options that allow most, and of an answer over SCTP.
var maxInReply = mpa.Options{LargePrivateData: true}.MaxPrivate()

// An authError is why an initiator was refused by what authenticates it, which keeps a log of
// its own.
type authError struct{ error }

func (e authError) Unwrap() error { return e.error }

func isAuthError(err error) bool {
	var e authError
	return errors.As(err, &e)
}

var errNoSealer = errors.New("the Authenticator has returned no session")

// unseal has the Request opened by what authenticates connections, if anything does, before it
// is handed on. If it is not accepted the initiator is told so, and the Request is to be
// closed.
func (q *Request) unseal(ctx context.Context, cfg ListenConfig) error {
	if cfg.Seal == nil {
		return nil
	}
	local := q.LocalAddr()
	seal, err := cfg.Seal(ctx, Arrival{Network: NetworkOf(local), Local: local, Remote: q.RemoteAddr(), MaxPrivate: maxInReply})
	if err == nil && seal == nil {
		err = errNoSealer
	}
	if err != nil {
		return authError{err}
	}
	q.seal = seal
	if err := q.offer.Open(seal); err != nil {
		ctx, cancel := context.WithTimeout(ctx, refuseTime)
		defer cancel()
		_ = q.offer.refuse(ctx, err) // the initiator need not hear of it
		return authError{err}
	}
	return nil
}

// Sealer is what has opened the Request; nil: nothing.
func (q *Request) Sealer() Sealer { return q.seal }

// closeSeal ends the Sealer unless it is that of a connection.
func (q *Request) closeSeal() {
	if q.seal != nil && !q.established {
		q.sealed.Do(q.seal.Close)
	}
}

// admits asks Admit about a connection.
func (c *ListenConfig) admits(remote net.Addr) bool {
	return c.Admit == nil || c.Admit(remote) == nil
}
