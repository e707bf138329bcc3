// Package regionkey makes the keys of one-sided operations on regions of memory, and encrypts
// and authenticates (seals) data under them by AES-GCM. Package rma uses it for its operations,
// which are those of 1RMA (Singhvi et al., SIGCOMM 2020); a program that uses rma does not call
// this package. It has no connection, clock or goroutine of its own. Keys are derived by HKDF
// (RFC 5869).
//
// # Keys
//
// The server gives each region a key, which never leaves it: [NewRing]. From it, and from the
// authenticated identity of a client, the server derives a [Key] for each kind of operation
// ([Ring.Derive]) and hands it to the client. Both sides then make the same traffic keys from
// it, one for each direction ([Traffic]). They are of no use on another connection, because a
// [Binding] adds a secret that both sides have from the set-up of this one ([BindingSecret]). The
// messages of the protocol are sealed under a key of the connection ([NewControl]).
//
// A new region key is a new [Epoch]. The key before it is good for a grace at most.
//
// # Nonces
//
// AES-GCM protects nothing if one key seals twice with the same nonce. Nonces are therefore
// counted, not drawn at random: each
// side has one [Counter] for messages and one for data, of a connection and not of a key. They
// go on when keys are made again, from a cache for example or when a region is opened anew. So
// inside a connection no number comes twice, and another connection has other keys. One key
// has three uses, data, tags and messages, which differ in the nonce.
//
// # Secrets
//
// Values of this package print without their secrets. [Ring.Close] and [Key.Wipe]
// overwrite what they hold; the secret of a [Binding] is a Key. What the standard library computes from a key, the
// schedule of AES above all, cannot be overwritten, and goes with the next garbage collection.
//
// A Counter, a [Sealer] and a [Control] may be used by any number of goroutines at the same
// time. All else is used by one at a time.
package regionkey
