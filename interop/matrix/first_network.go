package matrix

// ourSpace is the network namespace of our end in the NVMe and mount cases: Linux's hosts, targets and clients work only in
// the first namespace.
const ourSpace = "ours"

// OurSecondIP is another address of our end, for a second port of the NVMe target, or for MOUNT of NFS.
const OurSecondIP = "10.1.0.3"

// setUpNVMe makes the wire for the NVMe cases.
func setUpNVMe() error {
	return setUpFirst("modprobe -a configfs nvme_rdma nvmet_rdma ext4 xfs", "mount -t configfs configfs /sys/kernel/config")
}

// setUpFirst makes a wire with siw on its end in the first namespace, and runs more commands.
func setUpFirst(more ...string) error {
	err := commands(append([]string{
		"ip link set lo up",
		"ip netns add " + ourSpace,
		"ip link add v0 index 100 type veth peer name v1 index 101 netns " + ourSpace,
		"ip addr add " + PeerIP + "/24 dev v0", "ip addr add " + PeerIP6 + "/64 dev v0 nodad", "ip link set v0 up",
		"ip -n " + ourSpace + " link set lo up",
		"ip -n " + ourSpace + " addr add " + OurIP + "/24 dev v1", "ip -n " + ourSpace + " addr add " + OurSecondIP + "/24 dev v1",
		"ip -n " + ourSpace + " addr add " + OurIP6 + "/64 dev v1 nodad",
		"ip -n " + ourSpace + " link set v1 up",
		"rdma link add siw0 type siw netdev v0",
	}, more...)...)
	if err != nil {
		return err
	}
	return reach(OurIP)
}
