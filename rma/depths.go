package rma

import "github.com/goiwarp/iwarp"

// Depths returns how deep the queues of a QP have to be, QPConfig.SendDepth and RecvDepth, where
// each side may have so many requests of the other one unanswered: ServerConfig.Depth of its Server,
// and 0 for a side that has none. Both queues complete on one CQ, of as many entries as both have.
func Depths(own, peer int) (send, recv int) {
	return 6*(own+peer) + 32, 2*(own+peer) + 16
}

// Prepare sets the depths of cfg as Depths says, and makes its CQ, which goes with the connection. If
// there will be no connection the caller closes it. own and peer are 0 to 65,535.
func Prepare(rnic *iwarp.RNIC, cfg *iwarp.QPConfig, own, peer int) error {
	for _, depth := range []int{own, peer} { // the depths of others could overflow, or be those of fewer requests
		if err := within("the depth for Prepare", depth, 0, maxDepth); err != nil {
			return err
		}
	}
	send, recv := Depths(own, peer)
	cq, err := rnic.CreateCQ(send + recv)
	if err == nil {
		cfg.SendDepth, cfg.RecvDepth, cfg.SendCQ, cfg.RecvCQ = send, recv, cq, cq
	}
	return err
}
