// Package drive plays the random attackers of package attack at an address.
//
// [Run] has so many attackers at a time, each with a connection of its own, until its context ends or so many
// conversations have been held. It counts what came of them in a [Tally]. What the other side does is no matter
// for an attacker, but that it goes on taking connections.
package drive
