package transfer

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

func TestThereAndBack(t *testing.T) {
	for _, n := range []int{0, 1, chunk, odd} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			s := startTestServer(t)
			c, ctx := s.client(t)
			local, sum := file(t, filepath.Join(t.TempDir(), "local"), n)

			put, err := c.Put(ctx, local, "kept")
			require.NoError(t, err)
			require.Equal(t, sum, put.Sum)
			require.Equal(t, sum, sumOf(t, s.path("kept")), "the server has what was put")
			require.Equal(t, []string{"kept"}, s.names(t), "and no temporary file")

			require.NoError(t, os.Remove(local))
			got, err := c.Get(ctx, "kept", local)
			require.NoError(t, err)
			require.Equal(t, sum, got.Sum)
			require.Equal(t, sum, sumOf(t, local), "what comes back is what was put")

			octets := uint64(n)
			mine, its := c.qp.Stats(), got.Server
			require.Equal(t, octets, mine.Sent.RDMAWrite.Octets, "the file went by RDMA Write")
			require.Equal(t, octets, its.Received.RDMAWrite.Octets, "and was received as such")
			require.Equal(t, octets, its.Sent.ReadResponse.Octets, "it came back by RDMA Read Response")
			require.Equal(t, octets, mine.Received.ReadResponse.Octets, "and was received as such")
			require.NoError(t, c.Close())
		})
	}
}

func TestPutReplacesAFile(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	file(t, s.path("name"), 10)
	local, sum := file(t, filepath.Join(t.TempDir(), "local"), odd)
	_, err := c.Put(ctx, local, "name")
	require.NoError(t, err)
	require.Equal(t, sum, sumOf(t, s.path("name")))
}

// TestAReplacedFileKeepsItsRights: on both sides, so that no other user can read the new file.
func TestAReplacedFileKeepsItsRights(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such rights there")
	}
	s := startTestServer(t)
	c, ctx := s.client(t)
	dir := t.TempDir()
	local, _ := file(t, filepath.Join(dir, "local"), odd)
	for _, rights := range []os.FileMode{0o600, 0o400, 0o666} {
		for _, name := range []string{s.path("name"), filepath.Join(dir, "back")} {
			_ = os.Remove(name)
			file(t, name, 10)
			require.NoError(t, os.Chmod(name, rights))
		}
		_, err := c.Put(ctx, local, "name")
		require.NoError(t, err)
		_, err = c.Get(ctx, "name", filepath.Join(dir, "back"))
		require.NoError(t, err)
		for _, name := range []string{s.path("name"), filepath.Join(dir, "back")} {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.EqualValues(t, odd, info.Size())
			require.Equal(t, rights, info.Mode(), name)
		}
	}
	_, err := c.Put(ctx, local, "other")
	require.NoError(t, err)
	before, err := os.Stat(local)
	require.NoError(t, err)
	other, err := os.Stat(s.path("other"))
	require.NoError(t, err)
	require.Equal(t, before.Mode(), other.Mode(), "both are new, and have what the umask leaves")
}

// TestLongNames: a name may be as long as the file system allows, whatever name the file has until it is complete.
func TestLongNames(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	local, sum := file(t, filepath.Join(t.TempDir(), strings.Repeat("l", 255)), odd)
	name := strings.Repeat("n", 255)
	_, err := c.Put(ctx, local, name)
	require.NoError(t, err)
	require.Equal(t, sum, sumOf(t, s.path(name)))
	require.NoError(t, os.Remove(local))
	_, err = c.Get(ctx, name, local)
	require.NoError(t, err)
	require.Equal(t, sum, sumOf(t, local))
}

// TestWhatIsNotReplaced: no file replaces a directory, a pipe or a device, and this is found out before everything is
// copied.
func TestWhatIsNotReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a socket is no file there")
	}
	s := startTestServer(t)
	c, ctx := s.client(t)
	dir := t.TempDir()
	local, _ := file(t, filepath.Join(dir, "local"), odd)
	for _, at := range []string{dir, s.dir} {
		require.NoError(t, os.Mkdir(filepath.Join(at, "sub"), 0o777))
		l, err := net.Listen("unix", filepath.Join(at, "s")) // a path of a socket must be short
		require.NoError(t, err)
		defer l.Close()
	}
	for _, name := range []string{"sub", "s"} {
		_, err := c.Put(ctx, local, name)
		require.ErrorContains(t, err, "not a regular file", name)
	}
	require.Zero(t, c.qp.Stats().Sent.RDMAWrite.Octets, "nothing was copied")
	_, err := c.Put(ctx, local, "name")
	require.NoError(t, err)
	for _, name := range []string{"sub", "sub/", "s", "."} {
		_, err = c.Get(ctx, "name", dir+"/"+name)
		require.ErrorContains(t, err, "not a regular file", name)
	}
	require.Zero(t, c.qp.Stats().Received.ReadResponse.Octets)
	entries, err := os.ReadDir(filepath.Join(dir, "sub"))
	require.NoError(t, err)
	require.Empty(t, entries)
	require.Equal(t, []string{"name", "s", "sub"}, s.names(t))
}

// TestADirectoryThatCannotBeRead: if the client is told that a file was refused, the file does not exist.
func TestADirectoryThatCannotBeRead(t *testing.T) {
	if os.Getuid() <= 0 {
		t.Skip("root can read every directory, and Windows has no such rights")
	}
	s := startTestServer(t)
	c, ctx := s.client(t)
	require.NoError(t, os.Mkdir(s.path("sub"), 0o300))
	local, _ := file(t, filepath.Join(t.TempDir(), "local"), odd)
	_, err := c.Put(ctx, local, "sub/name")
	require.ErrorContains(t, err, "server: ")
	require.NoError(t, os.Chmod(s.path("sub"), 0o700))
	entries, err := os.ReadDir(s.path("sub"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestSubdirectories(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	require.NoError(t, os.Mkdir(s.path("sub"), 0o777))
	local, sum := file(t, filepath.Join(t.TempDir(), "local"), odd)
	_, err := c.Put(ctx, local, "sub/name")
	require.NoError(t, err)
	require.Equal(t, sum, sumOf(t, s.path(filepath.Join("sub", "name"))))
	_, err = c.Put(ctx, local, "other/name")
	require.ErrorContains(t, err, "server: ", "a directory is not made on the way")
}

func TestSeveralClients(t *testing.T) {
	const clients = 4
	s := startTestServer(t)
	errs := make(chan error, clients)
	for i := range clients {
		c, ctx := s.client(t)
		local, _ := file(t, filepath.Join(t.TempDir(), "local"), odd+i)
		go func() {
			name := strconv.Itoa(i)
			_, err := c.Put(ctx, local, name)
			if err == nil {
				_, err = c.Get(ctx, name, local)
			}
			errs <- err
		}()
	}
	for range clients {
		require.NoError(t, <-errs)
	}
	require.Equal(t, []string{"0", "1", "2", "3"}, s.names(t))
}

func TestWhatIsNotThere(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	dir := t.TempDir()
	_, err := c.Get(ctx, "nothing", filepath.Join(dir, "local"))
	require.ErrorContains(t, err, "open nothing: ", "the server says which file it does not have")
	require.NoFileExists(t, filepath.Join(dir, "local"))
	_, err = c.Put(ctx, filepath.Join(dir, "nowhere"), "name")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, filepath.Join(dir, "nowhere"), "with its directory")
	_, err = c.Put(ctx, dir, "name")
	require.ErrorContains(t, err, "not a regular file")
	local, _ := file(t, filepath.Join(dir, "file"), odd)
	_, err = c.Put(ctx, local, "nowhere/name")
	require.ErrorContains(t, err, "create nowhere/name: ", "and not with a temporary name")

	_, err = c.Put(ctx, first(file(t, filepath.Join(dir, "local"), odd)), "name")
	require.NoError(t, err, "the connection goes on after an error")
}

func first(a, _ string) string { return a }

// TestAFileOfTheUserMayBeALink: the link may lead to another directory. Only names from a peer must stay below a
// directory.
func TestAFileOfTheUserMayBeALink(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	elsewhere, sum := file(t, filepath.Join(t.TempDir(), "data"), odd)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(elsewhere, link))
	r, err := c.Put(ctx, link, "name")
	require.NoError(t, err)
	require.Equal(t, sum, r.Sum)
}

// TestGetFollowsALink: it follows a link of the user, such as /dev/stdout. A link of the server is replaced, wherever it
// leads.
func TestGetFollowsALink(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	local, sum := file(t, s.path("name"), odd)
	target, before := file(t, filepath.Join(t.TempDir(), "target"), 10)
	link := filepath.Join(t.TempDir(), "link")
	for _, at := range []string{link, s.path("link")} {
		require.NoError(t, os.Symlink(target, at))
	}
	_, err := c.Put(ctx, local, "link")
	require.NoError(t, err)
	require.Equal(t, before, sumOf(t, target))
	require.Equal(t, sum, sumOf(t, s.path("link")))
	_, err = c.Get(ctx, "name", link)
	require.NoError(t, err)
	require.Equal(t, sum, sumOf(t, target))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "it is a link still")
}

func TestNamesThatLeadElsewhere(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	outside := t.TempDir()
	secret, _ := file(t, filepath.Join(outside, "secret"), odd)
	require.NoError(t, os.Symlink(outside, s.path("link")))
	require.NoError(t, os.Symlink(secret, s.path("direct")))
	local := filepath.Join(t.TempDir(), "local")
	for _, name := range []string{
		"", ".", "..", "/", "../secret", "a/../../secret", "a//b", "./a", "link/secret", "link", "direct", filepath.ToSlash(secret), "nul\x00", string(make([]byte, maxText+1)),
	} {
		_, err := c.Get(ctx, name, local)
		require.ErrorContains(t, err, "server: ", "%.20q is not given out", name)
		require.NoFileExists(t, local)
	}
	for _, name := range []string{"", ".", "..", "../new", "link/new", filepath.ToSlash(outside) + "/new"} {
		_, err := c.Put(ctx, secret, name)
		require.ErrorContains(t, err, "server: ", "%q is not taken", name)
	}
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was made outside the directory")
	require.Equal(t, []string{"direct", "link"}, s.names(t))
}

// TestAClientThatLeavesBeforeTheSum: the server does not read a file to its end for a client that has gone. The file is
// as long as the client says, and takes no disk space.
func TestAClientThatLeavesBeforeTheSum(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	if _, err := c.ask(ctx, &request{Op: opPut, Name: "name", Size: 1 << 38}); err != nil {
		t.Skip("no file can be so long here: ", err)
	}
	require.NoError(t, c.send(ctx, &request{Op: opDone}))
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return len(s.names(t)) == 0 }, 10*time.Second, 10*time.Millisecond, "nothing is left of it")
}

func TestSizesThatCannotBe(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	_, err := c.ask(ctx, &request{Op: opPut, Name: "name", Size: -1})
	require.ErrorContains(t, err, "server: a file of -1 octets")
	require.Empty(t, s.names(t))
}

func TestWrongSum(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	file(t, s.path("name"), 10)
	before := sumOf(t, s.path("name"))
	_, err := c.ask(ctx, &request{Op: opPut, Name: "name", Size: odd})
	require.NoError(t, err)
	_, err = c.ask(ctx, &request{Op: opDone, Sum: "not what was written"})
	require.ErrorContains(t, err, "which is not the client's")
	require.Equal(t, []string{"name"}, s.names(t), "the temporary file is gone")
	require.Equal(t, before, sumOf(t, s.path("name")), "and the old one untouched")
}

func TestTheRegionDiesWithDone(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	file(t, s.path("name"), odd)
	rep, err := c.ask(ctx, &request{Op: opGet, Name: "name"})
	require.NoError(t, err)
	_, err = c.ask(ctx, &request{Op: opDone})
	require.NoError(t, err)

	mr, err := c.pd.RegisterMR(make([]byte, 8), stag.LocalWrite, nil)
	require.NoError(t, err)
	err = c.qp.RDMARead(ctx, mr.Slice(0, 8), rep.Region.at(0, 8))
	require.ErrorIs(t, err, iwarp.ErrInvalidSTag, "after done the server's STag is worth nothing")
}

func TestWhatIsGotCannotBeWritten(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	_, sum := file(t, s.path("name"), odd)
	rep, err := c.ask(ctx, &request{Op: opGet, Name: "name"})
	require.NoError(t, err)
	_, err = c.qp.Remote(rep.Region.at(0, 8)).WriteAt([]byte("changed!"), 0)
	if err == nil {
		err = placed(ctx, c.qp)
	}
	require.ErrorIs(t, err, iwarp.ErrAccess)
	require.Equal(t, sum, sumOf(t, s.path("name")))
}

func TestRequestsOutOfTurnEndTheConnection(t *testing.T) {
	for _, ops := range [][]string{{opDone}, {"format"}, {opPut, opGet}} {
		s := startTestServer(t)
		c, ctx := s.client(t)
		var err error
		for _, op := range ops {
			_, err = c.ask(ctx, &request{Op: op, Name: "name", Size: odd})
		}
		require.Error(t, err, "%v", ops)
		require.NotContains(t, err.Error(), "server: ", "there is no answer to %v", ops)
		s.stop()
		require.Empty(t, s.names(t))
	}
}

func TestAClientThatLeavesInTheMiddle(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	_, err := c.ask(ctx, &request{Op: opPut, Name: "name", Size: odd})
	require.NoError(t, err)
	require.Len(t, s.names(t), 1, "there is a temporary file")
	require.NoError(t, c.qp.Abort())
	require.Eventually(t, func() bool { return len(s.names(t)) == 0 }, 30*time.Second, time.Millisecond, "it goes with the client")
}

func TestAClientThatLeavesInGoodOrder(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	_, err := c.Put(ctx, first(file(t, filepath.Join(t.TempDir(), "local"), 1)), "name")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = c.ask(ctx, &request{Op: opGet, Name: "name"})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a connection that has ended takes no request")
	require.ErrorIs(t, err, net.ErrClosed, "that is the end of a connection, and not of a file")
	s.stop()
	require.Contains(t, s.log.String(), "msg=put")
	require.NotContains(t, s.log.String(), "WARN", "to leave is no failure")
}

func TestAServerThatEndsInTheMiddle(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	_, err := c.ask(ctx, &request{Op: opPut, Name: "name", Size: odd})
	require.NoError(t, err)
	s.stop()
	require.Empty(t, s.names(t), "the temporary file is gone when the server is")
	_, err = c.ask(ctx, &request{Op: opDone})
	require.Error(t, err)
}

func TestACancelledTransfer(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	file(t, s.path("name"), odd)
	rep, err := c.ask(ctx, &request{Op: opGet, Name: "name"})
	require.NoError(t, err)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	in, err := create(root, "local", rep.Region.Size)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err = c.move(ctx, iwarp.OpRDMARead, in.fileBuffer, stag.LocalWrite, rep.Region)
	in.discard()
	if err != nil { // calls that need not wait succeed even then
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, iwarp.StateError, c.qp.State(), "no work request is left behind")
	}
	require.NoFileExists(t, filepath.Join(dir, "local"))
}

func TestAServerThatOffersTooLittle(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	local, _ := file(t, filepath.Join(t.TempDir(), "local"), odd)
	f, err := os.Open(local)
	require.NoError(t, err)
	defer f.Close()
	_, err = c.move(ctx, iwarp.OpRDMAWrite, fileBuffer{f, odd}, 0, region{Size: odd - 1})
	require.ErrorContains(t, err, "the server offers")
}

func TestAFileThatShrinks(t *testing.T) {
	name, _ := file(t, filepath.Join(t.TempDir(), "local"), 10)
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	_, err = fileBuffer{f, 11}.sum(t.Context())
	require.ErrorContains(t, err, "shorter")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = fileBuffer{f, 10}.sum(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, io.EOF)
}

func TestRegionsBeyond4GiB(t *testing.T) {
	r := region{STag: 7, TO: 1 << 40, Size: 1 << 35}
	require.Equal(t, iwarp.RemoteBuffer{STag: 7, TO: 1<<40 + 1<<34, Len: chunk}, r.at(1<<34, chunk))
}

// TestATransferThatFailsHere: the next transfer can use the connection.
func TestATransferThatFailsHere(t *testing.T) {
	s := startTestServer(t)
	c, ctx := s.client(t)
	_, sum := file(t, s.path("name"), odd)
	dir := t.TempDir()
	_, err := c.Get(ctx, "name", filepath.Join(dir, strings.Repeat("x", 256))) // no file can have this name
	require.Error(t, err)
	r, err := c.Get(ctx, "name", filepath.Join(dir, "local"))
	require.NoError(t, err)
	require.Equal(t, sum, r.Sum)
}

// TestAnAnswerThatComesLate: it is not taken for the answer to the next request.
func TestAnAnswerThatComesLate(t *testing.T) {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	l, err := rnic.Listen(t.Context(), "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	server := control{pd: pd}
	accepted := make(chan error, 1)
	go func() {
		req, err := l.Accept(t.Context())
		if err == nil {
			_, err = req.Accept(t.Context(), &iwarp.QPConfig{PD: pd, Setup: server.setup})
		}
		accepted <- err
	}()
	c, ctx := (&testServer{addr: l.Addr().String()}).client(t)
	require.NoError(t, <-accepted)

	short, cancel := context.WithCancel(ctx)
	go func() {
		_ = server.recv(ctx, new(request))
		cancel()
	}()
	_, err = c.ask(short, &request{Op: opDone, Sum: "of a put"})
	require.ErrorIs(t, err, context.Canceled)
	_ = server.send(ctx, &reply{Sum: "of a put"})
	_, err = c.ask(ctx, &request{Op: opPut, Name: "name"})
	require.Error(t, err)
}
