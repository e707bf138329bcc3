// Package attack generates random attackers: what each of them does with one connection, as data.
//
// An attacker speaks at a [Layer]. Its conversation is a valid one of that layer, which it has bent: messages are
// dropped, repeated, exchanged, flipped, made longer or shorter, spliced, or are old ones; octets come slowly, or
// not at all; and the connection ends in the middle, by a FIN or a RST. Below the layer all is right: an attacker
// at RDMAP sends FPDUs with good CRCs, so that the octets reach RDMAP.
//
// [Make] is a pure function: layer, seed, number and [Target] give the conversation again. Nothing here has a
// socket or a clock; package drive plays conversations at an address.
package attack
