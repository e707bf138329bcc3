package matrix

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/interop/wire"
)

const (
	nfsProgram   = "/tmp/nfs" // our program, built from examples/nfs
	nfsPort      = "20049"
	nfsMountPort = "20048"
)

// mountNFSCases are the cases of NFS over RPC over RDMA.
func mountNFSCases() []Case {
	fio := Case{Name: "nfs/6/fio", Role: Responder, Limit: 5 * time.Minute, NoCapture: true}
	return serving(wire.RPC,
		crcBoth(Case{Name: "nfs/1/files", Role: Responder, Core: true}, (*T).mountNFS),
		crcBoth(Case{Name: "nfs/2/sizes", Role: Responder, Limit: 5 * time.Minute}, (*T).sizesNFS),
		crcBoth(Case{Name: "nfs/3/rsize", Role: Responder, Limit: 5 * time.Minute}, (*T).transfersNFS),
		crcBoth(Case{Name: "nfs/3/thresholds", Role: Responder, Limit: 5 * time.Minute}, (*T).thresholdsNFS),
		crcBoth(Case{Name: "nfs/4/links", Role: Responder, Core: true}, (*T).linksNFS),
		crcBoth(Case{Name: "nfs/5/names", Role: Responder, Limit: 5 * time.Minute}, (*T).namesNFS),
		crcBoth(fio, (*T).fioNFS),
		crcBoth(Case{Name: "nfs/7/restarts", Role: Responder, Limit: 10 * time.Minute, Wire: torn}, (*T).restartsNFS),
		crcBoth(Case{Name: "nfs/7/restarts-under-fio", Role: Responder, Limit: 10 * time.Minute, NoCapture: true}, (*T).restartsUnderFio),
		crcBoth(Case{Name: "nfs/8/idle", Role: Responder, Limit: 9 * time.Minute}, (*T).idleNFS),
		crcBoth(Case{Name: "nfs/9/eight-mounts", Role: Responder, Limit: 5 * time.Minute}, (*T).eightMountsNFS),
		crcBoth(Case{Name: "nfs/9/ipv6", Role: Responder}, (*T).mountNFS6),
	)
}

// serveNFS starts our server, and waits until it listens.
func (t *T) serveNFS(crc bool, dir string) *process { return t.serveNFSAt(OurIP, crc, dir) }

// serveNFSAt is serveNFS at one of our addresses, with more flags. MOUNT, which is plain TCP, uses another address, since all traffic of
// OurIP must be iWARP.
func (t *T) serveNFSAt(ip string, crc bool, dir string, more ...string) *process {
	args := []string{"netns", "exec", ourSpace, nfsProgram, "-root", dir, "-listen", net.JoinHostPort(ip, nfsPort), "-mount", OurSecondIP + ":" + nfsMountPort}
	if !crc {
		args = append(args, "-nocrc")
	}
	p := t.start(exec.Command("ip", append(args, more...)...), "nfs")
	p.says("serving ")
	return p
}

// mountFromNFS mounts the directory of our server, with more options.
func (t *T) mountFromNFS(more ...string) { t.mountFrom("nfs", OurIP+":/", nfsOptions(more...)) }

// nfsOptions returns the options of a mount over RDMA, and more.
func nfsOptions(more ...string) string {
	return strings.Join(append([]string{
		"vers=3", "proto=rdma", "port=" + nfsPort, "mountproto=tcp", "mountport=" + nfsMountPort, "nolock", "mountvers=3", "addr=" + OurIP, "mountaddr=" + OurSecondIP,
	}, more...), ",")
}

// mountNFS mounts a directory, and uses it.
func (t *T) mountNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS()
	t.use(dir)
	t.wantNFSClean()
	t.unmount()
	t.stopsWell(server)
}

// mountNFS6 mounts a directory over IPv6, and uses it.
func (t *T) mountNFS6(crc bool) {
	dir := t.directory()
	server := t.serveNFSAt(OurIP6, crc, dir)
	options := strings.NewReplacer("proto=rdma", "proto=rdma6", ",addr="+OurIP, ",addr="+OurIP6).Replace(nfsOptions())
	t.mountFrom("nfs", "["+OurIP6+"]:/", options)
	t.use(dir)
	t.wantNFSClean()
	t.unmount()
	t.stopsWell(server)
}

// wantNFSClean checks the counters of the client: it uses RDMA, and received no replies that it did not understand.
func (t *T) wantNFSClean() {
	stats, err := os.ReadFile("/proc/self/mountstats")
	require.NoError(t, err)
	found := false
	for line := range strings.Lines(string(stats)) {
		f := strings.Fields(line)
		if len(f) < 20 || f[0] != "xprt:" || f[1] != "rdma" {
			continue
		}
		found = true
		t.figure("%s", strings.TrimSpace(line))
		// See xprt_rdma_print_stats in the kernel's transport.c. It also counts calls that it could send only later, for lack of
		// memory regions.
		require.Equal(t, []string{"0", "0"}, []string{f[9], f[21]}, "bad_xids and bad_reply_count of %q", line)
	}
	require.True(t, found, "the mount goes over RDMA")
}

// sizesNFS moves files with sizes around the limits of inline data, words and transfers.
func (t *T) sizesNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS()
	for _, octets := range []int64{0, 1, 3, 4, 5, 3800, 3848, 3900, 3996, 4095, 4096, 4097, 4200, 65535, 1<<20 - 1, 1 << 20, 1<<20 + 1, 16 << 20} {
		t.moves(dir, octets, 1<<20)
	}
	t.wantNFSClean()
	t.unmount()
	t.stopsWell(server)
}

// transfersNFS moves files with transfers of several sizes.
func (t *T) transfersNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	for _, size := range []int{1024, 4096, 65536, 1 << 20} {
		t.mountFromNFS(fmt.Sprintf("rsize=%d,wsize=%d", size, size))
		for _, octets := range []int64{1, int64(size) - 1, int64(size) + 1, 300001} {
			t.moves(dir, octets, 1<<20)
		}
		t.unmount()
	}
	t.stopsWell(server)
}

// thresholdsNFS moves files, and a link, with other limits for what Linux sends and accepts inline.
func (t *T) thresholdsNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	for _, inline := range []string{"1024", "16384"} {
		for _, direction := range []string{"read", "write"} {
			file := "/proc/sys/sunrpc/rdma_max_inline_" + direction
			t.write(file, inline)
			t.Cleanup(func() { t.write(file, "4096") })
		}
		t.mountFromNFS()
		for _, octets := range []int64{0, 1, 700, 900, 1000, 3900, 4100, 16000, 16500, 300001} {
			t.moves(dir, octets, 1<<20)
		}
		t.wantNames(mountPoint+"/many", manyNames()...)
		to := strings.Repeat("l", 900)
		require.NoError(t, os.Symlink(to, filepath.Join(mountPoint, "link"+inline)))
		got, err := os.Readlink(filepath.Join(dir, "link"+inline))
		require.NoError(t, err)
		require.Equal(t, to, got)
		t.wantNFSClean()
		t.unmount()
	}
	t.stopsWell(server)
}

// linksNFS makes symbolic links, the longer ones of which do not fit into a message.
func (t *T) linksNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS()
	for _, n := range []int{1, 100, 1000, 3000} {
		to := strings.Repeat("d/", n/2) + "x"[:n%2]
		name := fmt.Sprintf("link%d", n)
		require.NoError(t, os.Symlink(to, filepath.Join(mountPoint, name)), "a link of %d octets", n)
		dropCaches(t)
		got, err := os.Readlink(filepath.Join(mountPoint, name))
		require.NoError(t, err, "read a link of %d octets", n)
		require.Equal(t, to, got)
		got, err = os.Readlink(filepath.Join(dir, name))
		require.NoError(t, err, "at the server")
		require.Equal(t, to, got)
	}
	t.wantNFSClean()
	t.unmount()
	t.stopsWell(server)
}
