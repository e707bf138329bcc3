package rma

import "github.com/goiwarp/iwarp"

// Depths returns the QPConfig.SendDepth and RecvDepth that a QP needs. own is the ServerConfig.Depth of
// this side's Server, and peer that of the peer's Server; 0 stands for a side without a Server. Both
// queues complete on one CQ, which needs as many entries as the two queues together.
func Depths(own, peer int) (send, recv int) {
	return 6*(own+peer) + 32, 2*(own+peer) + 16
}

// Prepare sets the depths of cfg to those that Depths returns, and creates its CQ, which is closed with the
// connection. If no connection comes about, the caller closes the CQ. own and peer are 0 to 65,535.
func Prepare(rnic *iwarp.RNIC, cfg *iwarp.QPConfig, own, peer int) error {
	for _, depth := range []int{own, peer} { // others could make the result overflow, or too small
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
