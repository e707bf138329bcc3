// Package counters defines the types of the counts of an RNIC and its QPs, as plain values. Package iwarp returns them:
//
//   - iwarp.QP.Stats returns a [QP]: operations, octets, waits and queues of one connection.
//   - iwarp.QP.TCP returns a [TCP]: what the kernel reports about its TCP connection.
//   - iwarp.RNIC.Stats returns an [RNIC]: the sums over all QPs, including those that have ended, with the ends of
//     connections by cause and, if iwarp.Config.Latency is set, the latencies of operations.
//
// Package metrics exports them to Prometheus.
//
// Values whose description says "now" go up and down. All others only grow, over the life of the RNIC. The number of values
// is bounded, whatever peers send: a peer can neither choose a name nor make a list longer than the constants of this package.
package counters
