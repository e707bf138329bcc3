package matrix

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// The files that configure Linux's NFS server.
const (
	nfsdRoot  = "/proc/fs/nfsd"
	rpcCaches = "/proc/net/rpc"
	rpcbind   = "127.0.0.1:111"
)

// knfsdCases are the cases of our client and Linux's NFS server.
func knfsdCases() []Case {
	c := Case{Name: "nfs/10/knfsd", Role: Initiator, Core: true, Limit: 5 * time.Minute, Kernel: knfsdSays}
	return crcBoth(c, (*T).callKnfsd)
}

// knfsdSays matches what Linux's NFS server logs when it is started and stopped.
var knfsdSays = []string{`^NFSD: |^nfsd: `}

// callKnfsd runs our client on a directory that Linux serves, and then stops the server.
func (t *T) callKnfsd(crc bool) {
	dir := t.nfsd()
	client := t.start(exec.Command("ip", "netns", "exec", ourSpace, "/tmp/guest", "nfs-client", PeerIP+":"+nfsPort, t.rootHandle(dir), fmt.Sprint(crc)), "nfs-client")
	client.says("ready")
	for name, octets := range map[string]int64{"inline1024/file4097": 4097, "inline4096/file1048576": 1 << 20, "inline4096/file3": 3} {
		st, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err, "a file that our client has made")
		require.Equal(t, octets, st.Size(), name)
	}
	t.write(filepath.Join(nfsdRoot, "threads"), "0\n")
	client.succeed()
	require.Contains(t, client.out.String(), "ended: ")
}

// nfsd makes Linux serve a directory over RDMA until the case ends. It gives the kernel in advance the answers that mountd would give
// on request.
func (t *T) nfsd() (dir string) {
	t.rpcbind()
	t.tool("modprobe", "-a", "nfsd", "rpcrdma")
	t.tool("mount", "-t", "nfsd", "nfsd", nfsdRoot)
	t.Cleanup(func() { t.tool("umount", nfsdRoot) })
	dir, err := os.MkdirTemp("/run", "export")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// include/uapi/linux/nfsd/export.h: insecure port, async, no subtree check, no authentication of locks, an fsid.
	const flags, forever = 0x2 | 0x10 | 0x400 | 0x800 | 0x2000, "2147483647"
	for _, known := range []struct{ cache, line string }{
		{"auth.unix.ip", "nfsd " + OurIP + " " + forever + " lab"},
		{"nfsd.export", fmt.Sprintf("lab %s %s %d 65534 65534 1", dir, forever, flags)},
		{"nfsd.fh", `lab 1 \x01000000 ` + forever + " " + dir},
	} {
		t.write(filepath.Join(rpcCaches, known.cache, "channel"), known.line+"\n")
	}
	t.write(filepath.Join(nfsdRoot, "max_block_size"), "1048576\n") // it would be less in a small machine
	t.write(filepath.Join(nfsdRoot, "versions"), "-4 +3\n")
	t.write(filepath.Join(nfsdRoot, "portlist"), "rdma "+nfsPort+"\n")
	t.write(filepath.Join(nfsdRoot, "threads"), "4\n")
	t.Cleanup(func() {
		t.write(filepath.Join(nfsdRoot, "threads"), "0\n")
		for _, cache := range []string{"nfsd.fh", "nfsd.export", "auth.unix.ip"} {
			t.write(filepath.Join(rpcCaches, cache, "flush"), fmt.Sprint(time.Now().Unix()+1))
		}
	})
	return dir
}

// rootHandle asks the kernel for the handle of a directory that it serves, in hexadecimal.
func (t *T) rootHandle(dir string) string {
	f, err := os.OpenFile(filepath.Join(nfsdRoot, "filehandle"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // it was read
	_, err = fmt.Fprintf(f, "lab %s 64\n", dir)
	require.NoError(t, err, "the handle of the directory")
	b := make([]byte, 1024)
	n, err := f.ReadAt(b, 0)
	if !errors.Is(err, io.EOF) {
		require.NoError(t, err, "the handle of the directory")
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(b[:n])), `\x`)
	require.True(t, ok, "a handle in hexadecimal: %q", b[:n])
	_, err = hex.DecodeString(text)
	require.NoError(t, err)
	return text
}

// rpcbind replaces the program of that name, since Linux's NFS server does not start if it cannot register. It answers every call
// with yes.
func (t *T) rpcbind() {
	l, err := net.Listen("tcp", rpcbind)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // the kernel has ended it
				for answerRPC(c) == nil {
				}
			}()
		}
	}()
}

// answerRPC answers an RPC call with success and a word that means true.
func answerRPC(c io.ReadWriter) error {
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	left := int64(binary.BigEndian.Uint32(head[:])&^(1<<31)) - 4
	if _, err := io.CopyN(io.Discard, c, left); err != nil {
		return err
	}
	reply := binary.BigEndian.AppendUint32(nil, 1<<31|28)
	reply = append(reply, head[4:]...)
	for _, w := range []uint32{1, 0, 0, 0, 0, 1} { // a reply, accepted, no verifier, success, true
		reply = binary.BigEndian.AppendUint32(reply, w)
	}
	_, err := c.Write(reply)
	return err
}
