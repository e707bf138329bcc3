package matrix

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/interop/wire"
)

// mount9PCases are the cases of 9P over RDMA.
func mount9PCases() []Case {
	c := func(name string, minutes int) Case {
		return Case{Name: "9p/" + name, Role: Responder, Limit: time.Duration(minutes) * time.Minute}
	}
	files := c("1/files", 3)
	files.Core = true
	dies := c("7/server-dies", 3)
	dies.Wire, dies.Kernel = torn, leaks9P
	loose := c("4/fio-loose", 5)
	loose.NoCapture = true
	none := c("4/fio", 5)
	none.NoCapture = true
	return serving(wire.NineP,
		crcBoth(files, (*T).mount9P),
		crcBoth(c("2/sizes", 5), (*T).sizes9P),
		crcBoth(c("3/depths", 5), (*T).depths9P),
		crcBoth(none, func(t *T, crc bool) { t.fio9P(crc, "none") }),
		crcBoth(loose, func(t *T, crc bool) { t.fio9P(crc, "loose") }),
		crcBoth(c("5/names", 5), (*T).names9P),
		crcBoth(c("6/killed-writers", 8), (*T).killedWriters9P),
		crcBoth(dies, (*T).serverDies9P),
		crcBoth(c("8/two-mounts", 3), (*T).twoMounts9P),
	)
}

// leaks9P matches what Linux's client logs when it is unmounted after a request was lost with its connection, which it leaks.
var leaks9P = []string{
	`9p-fcall-cache|cut here|kmem_cache_destroy|end trace|Modules linked in|Tainted: |Hardware name|Call Trace|</?TASK>|^(CS|FS|CR2|PKRU|Code|R[A-Z0-9]{2}): |CPU: |^ (\? )?[\w.]+\+0x`,
}

// mountFrom9P mounts the directory of our server, with more options.
func (t *T) mountFrom9P(more string) {
	t.mountFrom("9p", OurIP, "trans=rdma,port="+ninepPort+",version=9p2000.L,access=any,"+more)
}

// depths9P runs eight writers at once, with as many requests at a time as the options allow.
func (t *T) depths9P(crc bool) {
	dir := t.directory()
	server := t.serve9P(crc, dir)
	for _, options := range []string{"msize=131072,sq=64,rq=64", "msize=1048576,sq=64,rq=64", "msize=65536,sq=256,rq=256"} {
		t.mountFrom9P(options)
		t.writersAtOnce(mountPoint, 8, 4<<20)
		t.unmount()
	}
	t.stopsWell(server)
}

// writersAtOnce starts n goroutines, each of which writes a file of so many octets below at, and reads it.
func (t *T) writersAtOnce(at string, n int, octets int64) {
	errs := make([]error, n)
	var writers sync.WaitGroup
	for i := range n {
		writers.Go(func() {
			name := filepath.Join(at, fmt.Sprintf("writer%d", i))
			errs[i] = errors.Join(writePieces(name, uint64(i), octets, 64<<10<<(i%5)), checkRandom(name, uint64(i), octets))
		})
	}
	writers.Wait()
	require.NoError(t, errors.Join(errs...))
}

// fio9P runs random I/O that fio verifies.
func (t *T) fio9P(crc bool, cache string) {
	dir := t.directory()
	server := t.serve9P(crc, dir)
	t.mountFrom9P("msize=131072,cache=" + cache)
	t.fioInFile(2)
	t.unmount()
	t.stopsWell(server)
}

// fioInFile runs fio on a file of the mounted file system, with so many jobs, for 20 seconds.
func (t *T) fioInFile(jobs int) {
	t.tool("fio", fio{rw: "randrw", bs: "1k-64k", jobs: jobs, size: "4m", more: []string{
		"--ioengine=psync", "--direct=0", "--fsync=64", "--time_based", "--runtime=20",
	}}.args(mountPoint+"/fio")...)
}

// names9P tests the operations of a file system other than reading and writing.
func (t *T) names9P(crc bool) {
	dir := t.directory()
	server := t.serve9P(crc, dir)
	t.mountFrom9P("msize=131072")
	t.linksAndModes(dir, "c")
	require.ErrorIs(t, os.Remove(mountPoint+"/e"), syscall.ENOTEMPTY)
	t.manyNames(1000)
	require.NoError(t, lockAndUnlock(mountPoint+"/small"), "flock")
	t.unmount()
	t.stopsWell(server)
}

// linksAndModes renames, links, truncates and changes modes, and checks the results at both ends. links are the names of
// hard links to make.
func (t *T) linksAndModes(dir string, links ...string) {
	at := func(name string) string { return filepath.Join(mountPoint, name) }
	require.NoError(t, os.WriteFile(at("a"), []byte("some text"), 0o600))
	require.NoError(t, os.Rename(at("a"), at("b")))
	for _, name := range links {
		require.NoError(t, os.Link(at("b"), at(name)))
	}
	require.NoError(t, os.Symlink("b", at("d")))
	require.NoError(t, os.Chmod(at("b"), 0o640))
	require.NoError(t, os.Truncate(at("b"), 4))
	f, err := os.OpenFile(at("b"), os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, os.Mkdir(at("e"), 0o755))
	require.NoError(t, os.Rename(at("b"), at("e/b")))
	require.Error(t, os.Remove(at("e")), "it is not empty")
	for _, root := range []string{mountPoint, dir} {
		for _, name := range append(links, "e/b") {
			text, err := os.ReadFile(filepath.Join(root, name))
			require.NoError(t, err)
			require.Equal(t, "some", string(text))
			st, err := os.Stat(filepath.Join(root, name))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), st.Mode(), name)
			require.Equal(t, fmt.Sprint(1+len(links)), strings.TrimSpace(t.tool("busybox", "stat", "-c", "%h", filepath.Join(root, name))), "links to %s", name)
		}
		to, err := os.Readlink(filepath.Join(root, "d"))
		require.NoError(t, err)
		require.Equal(t, "b", to)
		_, err = os.Stat(filepath.Join(root, "a"))
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

// manyNames makes n files in a directory, lists them and removes them.
func (t *T) manyNames(n int) {
	dir := filepath.Join(mountPoint, "much")
	require.NoError(t, os.Mkdir(dir, 0o755))
	var names []string
	for i := range n {
		name := fmt.Sprintf("a-name-that-is-not-very-short-%05d", i)
		names = append(names, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	dropCaches(t)
	t.wantNames(dir, names...)
	require.NoError(t, os.RemoveAll(dir))
}

// killedWriters9P repeatedly kills a program in the middle of a write, which makes the client abandon requests.
func (t *T) killedWriters9P(crc bool) {
	dir := t.directory()
	server := t.serve9P(crc, dir)
	t.mountFrom9P("msize=1048576")
	for i := range 50 {
		p := t.start(t.command("busybox", "dd", "if=/dev/zero", "of="+mountPoint+"/killed", "bs=4M", "count=100"), "dd")
		time.Sleep(time.Duration(10+7*i%100) * time.Millisecond)
		p.kill()
		require.NoError(t, checkRandom(mountPoint+"/big", 1, mountOctets), "after %d programs were killed", i+1)
	}
	require.NoError(t, os.Remove(mountPoint+"/killed"))
	t.unmount()
	t.stopsWell(server)
}

// serverDies9P kills the server while a program writes. The client does not connect again: the waiting call ends when the program
// is killed, and all other calls fail. The file system can then be unmounted, and a new server mounted.
func (t *T) serverDies9P(crc bool) {
	dir := t.directory()
	server := t.serve9P(crc, dir)
	t.mountFrom9P("msize=1048576,sq=64,rq=64")
	p := t.start(t.command("busybox", "dd", "if=/dev/zero", "of="+mountPoint+"/lost", "bs=256k", "count=4000"), "dd")
	time.Sleep(500 * time.Millisecond)
	server.kill()
	time.Sleep(100 * time.Millisecond)
	p.kill()
	_, err := os.ReadFile(mountPoint + "/small")
	require.ErrorIs(t, err, syscall.EIO)
	t.unmount()
	require.NoError(t, os.Remove(filepath.Join(dir, "lost")))

	server = t.serve9P(crc, dir)
	t.mountFrom9P("msize=131072")
	t.use(dir)
	t.unmount()
	t.stopsWell(server)
}

// twoMounts9P mounts a server twice, and reads through each mount what was written through the other.
func (t *T) twoMounts9P(crc bool) {
	dir := t.directory()
	server := t.serve9P(crc, dir)
	t.mountFrom9P("msize=131072")
	second := t.mountPointBeside("second")
	t.mountAt(second, "9p", OurIP, "trans=rdma,port="+ninepPort+",version=9p2000.L,access=any,msize=65536")
	require.NoError(t, writePieces(mountPoint+"/through-first", 5, mountOctets, 64<<10))
	require.NoError(t, writePieces(second+"/through-second", 6, mountOctets, 64<<10))
	require.NoError(t, checkRandom(second+"/through-first", 5, mountOctets))
	require.NoError(t, checkRandom(mountPoint+"/through-second", 6, mountOctets))
	t.tool("umount", second)
	t.unmount()
	t.stopsWell(server)
}
