package rpcrdma

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/captures"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// capturedRead is the RPC reply of READ in a capture, without the data.
const capturedRead = "6a65dcd0" + "00000001" + "00000000" + "00000000" + "00000000" + "00000000" + // accepted
	"00000000" + "00000001" + // NFS3_OK, attributes
	"00000001000001a4000000010000000000000000000000000000271100000000000027110000000000000000000000000000000000000000000000056b0291641efe92006b0291641efe92006b0291641efe9200" +
	"00002711" + "00000001" + "00002711"

// TestRPR_20_NFSv3 finds the data of READ, and the path of READLINK.
func TestRPR_20_NFSv3(t *testing.T) {
	head, err := hex.DecodeString(capturedRead)
	require.NoError(t, err)
	b := append(head, make([]byte, 10004)...)
	off, n, ok := NFSv3{}.Result(100003, 3, 6, b)
	require.True(t, ok)
	require.Equal(t, []int{len(head), 10001}, []int{off, n})
	for cut := range b {
		_, _, ok := NFSv3{}.Result(100003, 3, 6, b[:cut])
		require.False(t, ok, "%d octets", cut)
	}
	for _, c := range []struct{ prog, vers, proc uint32 }{{100003, 3, 5}, {100003, 3, 7}, {100003, 4, 6}, {100003, 2, 6}, {100005, 3, 6}, {100227, 3, 6}, {0, 0, 0}} {
		off, _, ok := NFSv3{}.Result(c.prog, c.vers, c.proc, b)
		if c.proc == 5 && ok {
			require.NotEqual(t, len(head), off, "READLINK has other words before its path")
			continue
		}
		require.False(t, ok, "%+v", c)
	}
	link := append(accepted(1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 'a', 'b', 'c', 0)
	off, n, ok = NFSv3{}.Result(100003, 3, 5, link)
	require.True(t, ok)
	require.Equal(t, []int{36, 3}, []int{off, n})
}

// TestRPR_20_Verifier: a verifier of another length moves the data.
func TestRPR_20_Verifier(t *testing.T) {
	plain := readReply(1, []byte("data!"))
	b := append([]byte{}, plain[:12]...)
	b = append(b, 0, 0, 0, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0)
	b = append(b, plain[20:]...)
	off, n, ok := NFSv3{}.Result(100003, 3, 6, b)
	require.True(t, ok)
	require.Equal(t, "data!", string(b[off:off+n]))
}

// TestRPR_20_FailedReplies have no data.
func TestRPR_20_FailedReplies(t *testing.T) {
	good := readReply(1, []byte("data"))
	_, _, ok := NFSv3{}.Result(100003, 3, 6, good)
	require.True(t, ok)
	for what, at := range map[string]int{"a call": 4, "denied": 8, "accept_stat": 20, "NFS3ERR": 24} {
		b := append([]byte{}, good...)
		binary.BigEndian.PutUint32(b[at:], 2)
		_, _, ok := NFSv3{}.Result(100003, 3, 6, b)
		require.False(t, ok, what)
	}
}

// FuzzNFSv3: the opaque that it finds is within the reply.
func FuzzNFSv3(f *testing.F) {
	f.Add(uint32(6), readReply(1, []byte("data")))
	f.Add(uint32(5), append(accepted(1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 'a', 'b', 'c', 0))
	f.Fuzz(func(t *testing.T, proc uint32, b []byte) {
		NFSv3{}.Argument(100003, 3, proc, b, len(b)/2)
		off, n, ok := NFSv3{}.Result(100003, 3, proc, b)
		if !ok {
			return
		}
		require.EqualValues(t, n, binary.BigEndian.Uint32(b[off-4:]))
		require.LessOrEqual(t, off+(n+3)&^3, len(b))
	})
}

// calls of NFSv3 with the arguments before an opaque of five octets, which lack what begins at the opaque.
var callsWithData = map[string]struct {
	proc uint32
	args []byte
}{
	"WRITE":                      {procWrite, slices.Concat(opaque([]byte("handle")), make([]byte, 16), []byte{0, 0, 0, 5})},
	"SYMLINK without attributes": {procSymlink, slices.Concat(opaque([]byte("handle")), opaque([]byte("name")), make([]byte, 6*4), []byte{0, 0, 0, 5})},
	"SYMLINK with all attributes": {procSymlink, slices.Concat(opaque([]byte("handle")), opaque([]byte("n")), []byte{
		0, 0, 0, 1, 0, 0, 1, 0xff, 0, 0, 0, 1, 1, 2, 3, 4, 0, 0, 0, 1, 1, 2, 3, 4, // mode, uid, gid
		0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, // size
		0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, // atime of the server, mtime of the client
		0, 0, 0, 5,
	})},
}

// TestRPR_20_ArgumentsOfNFSv3: the data of WRITE and the path of SYMLINK may come by a Read chunk, and nothing else of NFSv3.
func TestRPR_20_ArgumentsOfNFSv3(t *testing.T) {
	may := func(prog, vers, proc uint32, call []byte, off int) bool {
		return NFSv3{}.Argument(prog, vers, proc, call, off)
	}
	for name, c := range callsWithData {
		call := rpc(1, c.proc, c.args...)
		off := len(call)
		call = append(call, "data!\x00\x00\x00"...)
		require.True(t, may(100003, 3, c.proc, call, off), name)
		for at := wire.CallLen + 4; at <= len(call); at += 4 {
			require.Equal(t, at == off, may(100003, 3, c.proc, call, at), "%s: an opaque at %d of %d", name, at, off)
		}
		for proc := range uint32(22) {
			if proc != c.proc && (proc == procWrite || proc == procSymlink) {
				continue // its arguments are others
			}
			require.Equal(t, proc == c.proc, may(100003, 3, proc, call, off), "%s as procedure %d", name, proc)
		}
		for cut := range off {
			require.False(t, may(100003, 3, c.proc, call[:cut], off), "%s, %d octets of it", name, cut)
		}
		require.True(t, may(100003, 4, c.proc, call, wire.CallLen+4), "it says nothing of other versions")
		require.True(t, may(100005, 3, c.proc, call, wire.CallLen+4), "nor of other programs")
	}
	headers := captures.Headers(t)
	for name, c := range map[string]struct {
		proc uint32
		off  int
	}{
		"WRITE call: a Read chunk of 1 MiB at position 108":                  {procWrite, 108},
		"SYMLINK call with thresholds of 1024: a Read chunk at position 128": {procSymlink, 128},
	} {
		var h wire.Header
		n, err := h.Parse(headers[name])
		require.NoError(t, err, name)
		require.True(t, may(100003, 3, c.proc, headers[name][n:], c.off), name)
	}
}
