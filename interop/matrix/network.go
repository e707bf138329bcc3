package matrix

import (
	"fmt"
	"os/exec"
	"strings"
)

// The two ends of the wire, a veth pair: ours in the namespace of init, siw's in the
// namespace "peer". siw works on no loopback device.
const (
	ourDevice  = "v0"
	peerDevice = "v1"
	peerSpace  = "peer"
)

// SetUp makes the wire and puts siw, which is loaded, on its far end.
func SetUp() error {
	return commands(
		"ip link set lo up",
		"ip netns add peer",
		// The RDMA core tells devices of all namespaces apart by their index alone.
		"ip link add v0 index 100 type veth peer name v1 index 101 netns peer",
		"ip addr add "+OurIP+"/24 dev v0", "ip addr add "+OurIP6+"/64 dev v0 nodad", "ip link set v0 up",
		"ip -n peer link set lo up",
		"ip -n peer addr add "+PeerIP+"/24 dev v1", "ip -n peer addr add "+PeerIP6+"/64 dev v1 nodad", "ip -n peer link set v1 up",
		"ip netns exec peer rdma link add siw1 type siw netdev v1",
	)
}

func setMTU(n int) error {
	return commands(
		fmt.Sprintf("ip link set v0 mtu %d", n),
		fmt.Sprintf("ip -n peer link set v1 mtu %d", n),
	)
}

// commands runs programs one after the other.
func commands(lines ...string) error {
	for _, line := range lines {
		f := strings.Fields(line)
		if out, err := exec.Command(f[0], f[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
