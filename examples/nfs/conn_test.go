package main

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// nullCall is a call of the procedure NULL, with its mark.
func nullCall(xid uint32) (b []byte) {
	const null = 0
	for _, w := range []uint32{1<<31 | 40, xid, 0, 2, 100003, 3, null, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// TestClientThatReadsNoReplies: go-nfs has read some of the client's calls when the client goes away. The goroutine that
// would write the replies ends.
func TestClientThatReadsNoReplies(t *testing.T) {
	fs, err := newFilesystem(t.TempDir(), false)
	require.NoError(t, err)
	defer fs.root.Close()
	quiet()
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		s := &server{failed: make(chan error, 1)}
		s.serve(&handover{conn: conn}, newHandler(fs))
		_, err := client.Write(slices.Concat(nullCall(1), nullCall(2), nullCall(3), nullCall(4)))
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, client.Close())
		s.tasks.Wait()
	}) // it fails if a goroutine is left
}

// TestConnectionThatIsLeft: go-nfs leaves a connection whose RPC it cannot parse. The connection is closed, since
// clients could otherwise use up the descriptors. A connection that go-nfs reads from may be idle.
func TestConnectionThatIsLeft(t *testing.T) {
	fs, err := newFilesystem(t.TempDir(), false)
	require.NoError(t, err)
	defer fs.root.Close()
	quiet()
	for _, rpc := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client, conn := net.Pipe()
			s := &server{failed: make(chan error, 1)}
			s.serve(&handover{conn: conn}, newHandler(fs))
			call := nullCall(7)
			if !rpc {
				call[11] = 1 // a reply
			}
			_, err := client.Write(call)
			require.NoError(t, err)
			if rpc {
				_, err = io.ReadFull(client, make([]byte, 28))
				require.NoError(t, err)
			}
			require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Hour)))
			_, err = client.Read(make([]byte, 1))
			if rpc {
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			} else {
				require.ErrorIs(t, err, io.EOF)
			}
			require.NoError(t, client.Close())
			s.tasks.Wait()
		})
	}
}
