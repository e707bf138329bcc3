package matrix

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// namesNFS tests the operations of a file system other than reading and writing; lists of many names arrive in Reply chunks. go-nfs
// does not support hard links.
func (t *T) namesNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS()
	t.linksAndModes(dir)
	t.manyNames(1000)
	t.wantNFSClean()
	t.unmount()
	t.stopsWell(server)
}

// fioNFS runs random I/O that fio verifies.
func (t *T) fioNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS()
	t.fioInFile(4)
	t.wantNFSClean()
	t.unmount()
	t.stopsWell(server)
}

// idleNFS leaves a mount alone until the client ends the connection, and uses it again.
func (t *T) idleNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS()
	t.use(dir)
	established := func() string {
		return strings.TrimSpace(t.tool("ip", "netns", "exec", ourSpace, "ss", "-Htn", "state", "established", "sport = :"+nfsPort))
	}
	require.NotEmpty(t, established(), "there is a connection")
	// The kernel's transport ends a connection that has been idle for five minutes.
	require.True(t, t.within(7*time.Minute, func() bool { return established() == "" }), "the client ends the connection")
	dropCaches(t)
	require.NoError(t, checkRandom(mountPoint+"/big", 1, mountOctets), "the client connects again")
	t.wantNFSClean()
	t.unmount()
	t.stopsWell(server)
}

// eightMountsNFS mounts a server at eight places, for which the client may or may not share connections.
func (t *T) eightMountsNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS()
	places := []string{mountPoint}
	for i := range 7 {
		at := t.mountPointBeside(fmt.Sprint(i))
		t.mountAt(at, "nfs", OurIP+":/", nfsOptions("nosharecache"))
		places = append(places, at)
	}
	for i, at := range places {
		require.NoError(t, writePieces(fmt.Sprintf("%s/from%d", at, i), uint64(i), 300001, 64<<10))
	}
	for i, at := range places {
		from := (i + 3) % len(places)
		require.NoError(t, checkRandom(fmt.Sprintf("%s/from%d", at, from), uint64(from), 300001), "what was written at one place, at another")
	}
	for _, at := range places[1:] {
		t.tool("umount", at)
	}
	t.unmount()
	t.stopsWell(server)
}

// restartsUnderFio repeatedly kills the server while fio writes and verifies.
func (t *T) restartsUnderFio(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS("hard", "timeo=50")
	busy := t.start(t.command("fio", fio{rw: "randrw", bs: "1k-64k", jobs: 4, size: "4m", more: []string{
		"--ioengine=psync", "--direct=0", "--fsync=64", "--time_based", "--runtime=40",
	}}.args(mountPoint+"/fio")...), "fio")
	for range restarts {
		time.Sleep(time.Second)
		server.kill()
		time.Sleep(100 * time.Millisecond)
		server = t.serveNFS(crc, dir)
	}
	busy.succeed()
	t.unmount()
	t.stopsWell(server)
}

// restarts is how often the server is killed and started again.
const restarts = 20

// restartsNFS repeatedly kills the server while the client writes and reads: nothing must be lost.
func (t *T) restartsNFS(crc bool) {
	dir := t.directory()
	server := t.serveNFS(crc, dir)
	t.mountFromNFS("hard", "timeo=50")
	stop, failed, rounds := make(chan struct{}), make(chan error, 1), 0
	go func() {
		failed <- func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				name := filepath.Join(mountPoint, fmt.Sprintf("round%d", rounds%4))
				if err := writePieces(name, uint64(rounds), 3<<20+1, 256<<10); err != nil {
					return err
				}
				if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
					return err
				}
				if err := checkRandom(name, uint64(rounds), 3<<20+1); err != nil {
					return err
				}
				rounds++
			}
		}()
	}()
	for range restarts {
		time.Sleep(time.Second)
		server.kill()
		time.Sleep(100 * time.Millisecond)
		server = t.serveNFS(crc, dir)
	}
	close(stop)
	select {
	case err := <-failed:
		require.NoError(t, err)
	case <-t.Ctx.Done():
		require.Fail(t, "the client hangs")
	}
	require.Positive(t, rounds)
	t.figure("%d files of 3 MiB", rounds)
	t.unmount()
	t.stopsWell(server)
}
