// Package cm authenticates the set-up of connections, sets up thousands at once ([DialMany],
// [DisconnectMany]), and keeps QPs to many peers in a [Pool].
//
// To authenticate, both sides prove that they hold a key, in the private data of the start-up
// frames and in one message after them. [Auth] implements this as an [iwarp.Authenticator]:
//
//	ring, err := cm.NewRing(cm.Key{ID: 1, Secret: secret, Primary: true})
//	auth, err := cm.New(&cm.Config{Ring: ring, ID: id})
//	listener, err := rnic.Listen(ctx, "tcp", addr, &iwarp.ListenConfig{Auth: auth}) // the server
//	qp, err := rnic.Dial(ctx, "tcp", addr, &iwarp.QPConfig{PD: pd, Auth: auth})     // the client
//	peer, ok := qp.Peer()                                                          // the client, by its ID
//
// # Threats
//
// The attacker can read, change, drop, repeat and forge packets, and may be any host. It does
// not hold a key.
//
//   - It can neither connect nor impersonate either side: HMAC-SHA256 covers the whole start-up
//     frames in both directions, including the depths, the flags and the revision of MPA.
//   - A recorded Request cannot be replayed. In mode B, the default, the first message after
//     the set-up must contain a MAC over a nonce of the responder, and none of the responder's
//     memory can be reached before that message. In mode A, for peers that can exchange only
//     private data, the responder compares the time of the Request with its clock and looks the
//     Request up in a cache of earlier ones; so mode A needs clocks that agree, and memory. If
//     the clock is set back while the responder does not run, Requests recorded before can be
//     replayed, unless a CacheStore has kept them.
//   - A forged refusal can make a client that began in mode A try once more in mode B. Nothing
//     makes it use a weaker suite, mode or revision.
//   - Each forged Request of a flood costs one HMAC, and less once a source has failed too often.
//     All tables are bounded. Once a limit is reached, connections are refused.
//   - The refusal of a failed authentication is the same for each reason. The reason is in the
//     illegal-access log.
//
// The stream after the set-up is not protected: use TLS if an attacker may change an established
// stream. A client that holds a shared key can use any ID, and can impersonate the server: see
// [Key] with Derive, and Config.ExpectServer. In mode A, servers that share a key accept each
// other's recorded Requests, unless they share a [CacheStore].
//
// # Keys
//
// A [Ring] holds keys, and is replaced as a whole. To rotate, add the new key to the rings of
// all servers, then make it the primary key of the clients, then set NotAfter of the old one.
// If the server's key is a master key, each client needs only its own [ClientKey].
//
// # Many connections
//
// [DialMany] sets up a connection for each target of an iterator, with a bound on the set-ups in each
// stage, and yields each result when it is known. [Pool] keeps QPs to many peers, leases them out
// ([Lease]), and replaces QPs that have failed:
//
//	for target, result := range cm.DialMany(ctx, targets, &cm.Options{RNIC: rnic, QP: qpConfig, Retry: cm.DefaultRetry}) {
//		...
//	}
//
// # Errors and concurrency
//
// Every authentication failure matches [iwarp.ErrAuth]: an [Error] of this side, with the [Reason] that
// is logged, or a [Refusal] of the peer, with only a [Code]. A [SetupError] names the stage. All methods
// of Auth, Ring and Pool may be called from any goroutine.
//
// The protocol is this project's own; docs/security.md summarises it. On the wire it is private data in the
// frames of RFC 5044 and RFC 6581, and one message in mode B.
package cm
