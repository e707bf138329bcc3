// Package cm authenticates the set-up of connections, sets up thousands at once ([DialMany],
// [DisconnectMany]), and keeps QPs to many peers in a [Pool].
//
// To authenticate, both sides prove that they hold a key, in the private data of the start-up
// frames and in one message after them. An [Auth] does that; it is an [iwarp.Authenticator]:
//
//	ring, err := cm.NewRing(cm.Key{ID: 1, Secret: secret, Primary: true})
//	auth, err := cm.New(&cm.Config{Ring: ring, ID: id})
//	listener, err := rnic.Listen(ctx, "tcp", addr, &iwarp.ListenConfig{Auth: auth}) // the server
//	qp, err := rnic.Dial(ctx, "tcp", addr, &iwarp.QPConfig{PD: pd, Auth: auth})     // the client
//	peer, ok := qp.Peer()                                                          // the client, by its ID
//
// # Threats
//
// The attacker sees, changes, drops, repeats and makes up packets, and may be any host. It
// does not hold a key.
//
//   - It cannot connect, nor stand in for either side: the whole start-up frames are under
//     HMAC-SHA256, in both directions, with the depths, the flags and the revision of MPA.
//   - A recorded Request cannot be used again. In mode B, the default, the first message
//     after the set-up must contain a nonce of the responder, and no memory of the responder
//     can be reached before it. In mode A, for peers that can exchange private data alone, the
//     responder compares the time of the Request with its clock, and looks it up in a cache of
//     those that have come; so mode A needs clocks that agree, and memory. A clock that was set
//     back while the responder did not run opens it to what was recorded before, unless a
//     CacheStore has kept it.
//   - A forged refusal can make a client that began in mode A try once more in mode B. Nothing
//     makes it use a weaker suite, mode or revision.
//   - A flood of forged Requests costs one HMAC for each, and less once a source has failed too often. All
//     tables are bounded. Where a limit is reached connections are refused.
//   - The refusal of a failed authentication is the same for each reason. The reason is in the
//     illegal-access log.
//
// What comes after the set-up is not protected: use TLS where an attacker may change a stream
// that exists. A client that holds a shared key can use any ID, and can be the server: see
// [Key] with Derive, and Config.ExpectServer. In mode A servers that share a key accept each
// other's recorded Requests, unless they share a [CacheStore].
//
// # Keys
//
// A [Ring] holds keys, and is replaced as a whole. To rotate, add the new key to the rings of
// all servers, then make it the primary key of the clients, then set NotAfter of the old one.
// Where the server's key is a master key, each client needs only its own [ClientKey].
//
// # Many connections
//
// [DialMany] sets up as many connections as an iterator yields targets, with a bound on what is under
// way in each stage, and yields each as it is done. [Pool] keeps QPs to many peers, lends them out
// ([Lease]), and connects again what has failed:
//
//	for target, result := range cm.DialMany(ctx, targets, &cm.Options{RNIC: rnic, QP: qpConfig, Retry: cm.DefaultRetry}) {
//		...
//	}
//
// # Errors and concurrency
//
// Whatever fails in an authentication matches [iwarp.ErrAuth]: an [Error] of this side, with the [Reason]
// that goes into the log, or a [Refusal] of the peer, with a [Code] and no more. A [SetupError] names the
// stage. All methods of Auth, Ring and Pool may be called from any goroutine.
//
// The specification is this project's own (docs/security.md has it in short); on the wire it is private data of the
// frames of RFC 5044 and RFC 6581.
package cm
