// Package drive plays the random attackers of package attack at an address.
//
// [Run] runs a number of attackers at a time, each with its own connection, until its context ends or a number of
// conversations has been held. It counts their outcomes in a [Tally]. An attacker requires only that the other side
// continues to accept connections.
package drive
