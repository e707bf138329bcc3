// Package counters has what an RNIC and its QPs count, as plain values. Package iwarp fills them in: see iwarp.QP.Stats,
// iwarp.QP.TCP and iwarp.RNIC.Stats. Package metrics exports them to Prometheus.
//
// Values that end in "Now" in their description go up and down; all others only grow, over the life of the RNIC, and go
// on counting what QPs that have ended had counted. Nothing here grows with what peers send: a peer can neither choose a
// name nor make a list longer than the constants of this package.
package counters
