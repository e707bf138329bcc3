// Package attack generates random attackers: what each of them does on one connection, as data.
//
// An attacker acts at a [Layer]. Its conversation is a valid conversation of that layer that it has altered: messages
// are dropped, repeated, exchanged, flipped, made longer or shorter, spliced, or replaced by old ones; octets come
// slowly, or not at all; and the connection ends in the middle, by a FIN or a RST. Below the layer everything is
// correct: an attacker at RDMAP sends FPDUs with good CRCs, so that the octets reach RDMAP.
//
// [Make] is a pure function: the same layer, seed, number and [Target] give the same conversation. The package uses
// no socket and no clock; package drive plays conversations at an address.
package attack
