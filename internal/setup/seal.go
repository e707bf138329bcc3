package setup

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/transport"
)

// A Sealer authenticates the set-up of one connection on the responder's side.
type Sealer interface {
	transport.Sealer
	// Close is called once, if there will be no connection. From the call of Establish on, the
	// connection owns the Sealer.
	Close()
}

// An Arrival describes a connection whose Request has arrived, and is not trusted yet.
type Arrival struct {
	Network       string
	Local, Remote net.Addr
	MaxPrivate    int // octets of private data that fit into a Reply, if its options allow them
}

// refuseTime bounds how long sending the refusal of an untrusted Request may take.
const refuseTime = time.Second

// maxInReply is the maximum length of private data in a Reply, with the options that allow most, and in an answer over SCTP.
var maxInReply = mpa.Options{LargePrivateData: true}.MaxPrivate()

// An authError is why an initiator could not be authenticated. The authenticator keeps its own
// log.
type authError struct{ error }

func (e authError) Unwrap() error { return e.error }

func isAuthError(err error) bool {
	var e authError
	return errors.As(err, &e)
}

var errNoSealer = errors.New("the Authenticator has returned no session")

// unseal authenticates the Request with the Sealer of cfg, if there is one, before the Request is
// handed on. If the Sealer does not accept it, unseal tells the initiator, and the caller must close
// the Request.
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
		_ = q.offer.refuse(ctx, err) // the refusal need not reach the initiator
		return authError{err}
	}
	return nil
}

// Sealer returns the Sealer that has opened the Request, nil if there is none.
func (q *Request) Sealer() Sealer { return q.seal }

// closeSeal closes the Sealer unless a connection owns it.
func (q *Request) closeSeal() {
	if q.seal != nil && !q.established {
		q.sealed.Do(q.seal.Close)
	}
}

// admits reports whether Admit accepts a connection.
func (c *ListenConfig) admits(remote net.Addr) bool {
	return c.Admit == nil || c.Admit(remote) == nil
}
