package matrix

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// The two ends of the wire, a veth pair: ours in the namespace of init, siw's in the
// namespace "peer". siw does not work on a loopback device.
const (
	ourDevice  = "v0"
	peerDevice = "v1"
	peerSpace  = "peer"
)

// setUp makes the wire and adds siw to its far end.
func setUp() error {
	err := commands(
		"ip link set lo up",
		"ip netns add peer",
		// The RDMA core tells devices of all namespaces apart by their index alone.
		"ip link add v0 index 100 type veth peer name v1 index 101 netns peer",
		"ip addr add "+OurIP+"/24 dev v0", "ip addr add "+OurIP6+"/64 dev v0 nodad", "ip link set v0 up",
		"ip -n peer link set lo up",
		"ip -n peer addr add "+PeerIP+"/24 dev v1", "ip -n peer addr add "+PeerIP6+"/64 dev v1 nodad", "ip -n peer link set v1 up",
		"ip netns exec peer rdma link add siw1 type siw netdev v1",
	)
	if err != nil {
		return err
	}
	return errors.Join(reach(PeerIP), reach(PeerIP6))
}

// reach makes sure that each end knows the other's link address, which the RDMA core's
// own resolution can miss in the first moments of the wire.
func reach(ip string) error {
	const unused = "1"
	var err error
	for range 20 {
		var c net.Conn
		c, err = net.DialTimeout("tcp", net.JoinHostPort(ip, unused), time.Second)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		if err == nil {
			return c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the other end of the wire: %w", err)
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
