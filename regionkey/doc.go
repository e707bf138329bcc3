// Package regionkey derives the keys of one-sided operations on regions of memory, and encrypts
// and authenticates (seals) data under them with AES-GCM. Package rma uses it for its operations,
// which follow 1RMA (Singhvi et al., SIGCOMM 2020); a program that uses rma does not call this
// package. The package uses no connection, clock or goroutine. Keys are derived by HKDF (RFC
// 5869).
//
// # Keys
//
// The server gives each region a key, which never leaves the server: [NewRing]. From this key and
// the authenticated identity of a client, the server derives a [Key] for each kind of operation
// ([Ring.Derive]) and sends it to the client. Both sides then derive the same traffic keys from
// that Key, one for each direction ([Traffic]). Traffic keys are useless on another connection,
// because a [Binding] adds a secret that comes from the set-up of this connection
// ([BindingSecret]). The messages of the protocol are sealed under a key of the connection
// ([NewControl]).
//
// A new region key begins a new [Epoch]. The previous key stays valid for a grace at most.
//
// # Nonces
//
// AES-GCM protects nothing if one key seals twice with the same nonce. Nonces are therefore
// counted, not random: each side has one [Counter] for messages and one for data, per connection
// and not per key. The counters continue when keys are derived again, for example because a
// region is opened again. So no number occurs twice on a connection, and another connection has
// other keys. The nonce also contains the usage: data, tag or message.
//
// # Secrets
//
// Values of this package print without their secrets. [Ring.Close] and [Key.Wipe] overwrite the
// secrets; the secret of a [Binding] is a Key. What the standard library computes from a key,
// above all the AES key schedule, cannot be overwritten. The garbage collector frees it.
//
// A Counter, a [Sealer] and a [Control] may be used by any number of goroutines at the same
// time. All other values may be used by one goroutine at a time.
package regionkey
