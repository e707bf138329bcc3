package matrix

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/interop/wire"
)

// mountCases is the table of cases in which Linux mounts our file systems, or our client uses those of Linux. The numbers are those of the test plans.
var mountCases = slices.Concat(mount9PCases(), mountNFSCases(), knfsdCases(), mountFigures())

const (
	ninepProgram = "/tmp/ninep" // ours, built from examples/ninep
	ninepPort    = "5640"
	mountOctets  = 1500000
	mountNames   = 40
)

// serving joins lists of cases in which we serve a protocol, whose answers are checked in the captures.
func serving(u wire.Upper, lists ...[]Case) []Case {
	all := slices.Concat(lists...)
	for i := range all {
		all[i].Wire.Upper = u
	}
	return all
}

// setUpMounts makes the wire for the mount cases.
func setUpMounts() error { return setUpFirst("modprobe -a 9p 9pnet_rdma nfsv3 rpcrdma") }

// mount9P mounts a directory, and uses it.
func (t *T) mount9P(crc bool) {
	dir := t.directory()
	server := t.serve9P(crc, dir)
	t.mountFrom9P("msize=131072")
	t.use(dir)
	t.unmount()
	t.stopsWell(server)
	require.NotContains(t, server.errs.String(), "level=WARN")
}

// sizes9P moves files of sizes at the edges of messages, with messages of several sizes.
func (t *T) sizes9P(crc bool) {
	dir := t.directory()
	server := t.serve9P(crc, dir)
	for _, msize := range []int64{4096, 8192, 64<<10 + 1, 1 << 20} {
		t.mountFrom9P(fmt.Sprintf("msize=%d", msize))
		for _, octets := range []int64{0, 1, msize - 25, msize - 24, msize - 23, 3*msize + 1} {
			t.moves(dir, octets, 1<<20)
		}
		t.unmount()
	}
	t.stopsWell(server)
}

// stopsWell ends one of our servers gracefully.
func (t *T) stopsWell(server *process) {
	require.NoError(t, server.cmd.Process.Signal(syscall.SIGTERM), "the server runs")
	require.True(t, t.endsWithin(server.done, 30*time.Second), "the server ends with SIGTERM")
	require.NoError(t, server.err, "the server ends well; it said %q", server.lastWords())
}

// use lists the mounted directory, which is dir at the server, reads it and writes to it.
func (t *T) use(dir string) {
	t.wantNames(mountPoint, "big", "many", "small")
	st, err := os.Stat(mountPoint + "/big")
	require.NoError(t, err, "stat")
	require.EqualValues(t, mountOctets, st.Size(), "size of a file")
	require.NoError(t, checkRandom(mountPoint+"/big", 1, mountOctets), "a file of the server")
	text, err := os.ReadFile(mountPoint + "/small")
	require.NoError(t, err)
	require.Equal(t, "small\n", string(text))
	t.wantNames(mountPoint+"/many", manyNames()...)
	t.moves(dir, mountOctets, 64<<10)
}

// manyNames returns the names in the directory many.
func manyNames() (names []string) {
	for i := range mountNames {
		names = append(names, fmt.Sprintf("name%02d", i))
	}
	return names
}

// moves writes a file of that many octets, piece by piece, and compares what both sides read.
func (t *T) moves(dir string, octets, piece int64) {
	name := fmt.Sprintf("new%d", octets)
	require.NoError(t, writePieces(filepath.Join(mountPoint, name), 2, octets, piece), "write %d octets", octets)
	dropCaches(t)
	require.NoError(t, checkRandom(filepath.Join(mountPoint, name), 2, octets), "the file that was written, by the client, %d octets", octets)
	require.NoError(t, checkRandom(filepath.Join(dir, name), 2, octets), "the file that was written, by the server, %d octets", octets)
}

// directory makes a directory for one of our servers.
func (t *T) directory() string {
	dir, err := os.MkdirTemp("/tmp", "export")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, writeRandom(filepath.Join(dir, "big"), 1, mountOctets))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "small"), []byte("small\n"), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "many"), 0o755))
	for _, name := range manyNames() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "many", name), nil, 0o644))
	}
	return dir
}

// serve9P starts our server, with more flags, and waits until it listens.
func (t *T) serve9P(crc bool, dir string, more ...string) *process {
	args := []string{"netns", "exec", ourSpace, ninepProgram, "-root", dir, "-listen", OurIP + ":" + ninepPort, "-v"}
	if !crc {
		args = append(args, "-nocrc")
	}
	p := t.start(exec.Command("ip", append(args, more...)...), "ninep")
	p.says("trans=rdma at")
	return p
}

// mountFrom mounts what a server serves.
func (t *T) mountFrom(kind, source, options string) { t.mountAt(mountPoint, kind, source, options) }

// mountAt is like mountFrom, at another place.
func (t *T) mountAt(at, kind, source, options string) {
	t.tool("mount", "-t", kind, "-o", options, source, at)
	// Unless the case has done it; not a failure of its own.
	t.Cleanup(func() { _ = exec.Command("umount", at).Run() })
}

// mountPointBeside makes another place to mount at.
func (t *T) mountPointBeside(name string) string {
	at := filepath.Join("/tmp", "mnt-"+name)
	require.NoError(t, os.MkdirAll(at, 0o755))
	return at
}

// wantNames lists a directory, reads the information about each name, and compares the names.
func (t *T) wantNames(dir string, want ...string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err, "list %s", dir)
	var names []string
	for _, e := range entries {
		_, err := e.Info()
		require.NoError(t, err, "information about %s", e.Name())
		names = append(names, e.Name())
	}
	require.Equal(t, want, names, "names of %s", dir)
}

// writePieces is like writeRandom, with a system call for each piece.
func writePieces(file string, seed uint64, octets, piece int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // after a failure
	r := newRandomOctets(seed)
	b := make([]byte, piece)
	for ; octets > 0; octets -= piece {
		n := min(piece, octets)
		if _, err := io.ReadFull(r, b[:n]); err != nil {
			return err
		}
		if _, err := f.Write(b[:n]); err != nil {
			return err
		}
	}
	return f.Close()
}
