package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/rma"
)

const captures = "../../internal/pcap/testdata/"

func TestDump(t *testing.T) {
	out := succeeds(t, "dump", captures+"rping.pcap")
	require.Contains(t, out, "#1 = TCP 10.1.0.1:35944 > 10.1.0.2:7174\n")
	require.Contains(t, out, "#1 > MPA Request, revision 2, CRC no, Markers no, IRD 1, ORD 1\n")
	all := objects(t, succeeds(t, "dump", "--json", captures+"rping.pcap"))
	require.Len(t, all, strings.Count(out, "\n"))
	require.Equal(t, "connection", all[0]["kind"])
	require.EqualValues(t, 1, all[3]["ddp"].(map[string]any)["msn"])
	require.Contains(t, succeeds(t, "dump", "--protocol", "7174=rsocket", captures+"rping.pcap"), "Send QN 0")
}

// TestDumpOfWhatIsNone: a file that is no capture gets one line that names packet and octet.
func TestDumpOfWhatIsNone(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(captures + "rping.pcap")
	require.NoError(t, err)
	cut := filepath.Join(dir, "cut.pcap")
	require.NoError(t, os.WriteFile(cut, whole[:700], 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, cli.Failed, iwarpMain(t, []string{"dump", cut}, &out, &errs))
	require.Equal(t, "iwarp dump: pcap: packet 8 at octet 662: 22 of its 106 octets are there: unexpected EOF: the capture is cut short\n", errs.String())
	require.Contains(t, out.String(), "MPA Reply", "what was before it")
	fails(t, cli.Failed, "not a capture file: it begins with 70 61 63 6b at octet 0", "dump", "dump_test.go")
	fails(t, cli.Failed, "no such file", "dump", filepath.Join(dir, "no.pcap"))
	fails(t, cli.Misused, "want PORT=NAME", "dump", "--protocol", "1=smtp", cut)
	fails(t, cli.Misused, "", "dump")
}

// A full has room for nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestDumpIntoNothing: the output has failed, and not the capture.
func TestDumpIntoNothing(t *testing.T) {
	var errs bytes.Buffer
	require.Equal(t, cli.Failed, iwarpMain(t, []string{"dump", captures + "rping.pcap"}, full{}, &errs))
	require.Equal(t, "iwarp dump: no space left on device\n", errs.String())
}

// A watch collects what a command prints, and can wait for a text in it.
type watch struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *watch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func (w *watch) waitFor(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(w.String(), text) }, 20*time.Second, time.Millisecond, text)
}

// TestDumpOfALiveConnection: the frames are printed while the connection lives, from a pipe and from a file that
// grows.
func TestDumpOfALiveConnection(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	file, err := os.Create(filepath.Join(t.TempDir(), "trace.pcap"))
	require.NoError(t, err)
	defer file.Close()
	var fromPipe, fromFile watch
	var pipeEnds, fileEnds sync.WaitGroup
	var status [2]int
	pipeEnds.Go(func() {
		status[0] = cli.Main(ctx, rootCommand(), []string{"dump", "-"}, cli.Streams{In: bufio.NewReader(r), Out: &fromPipe, Err: io.Discard})
	})
	fileEnds.Go(func() {
		status[1] = cli.Main(ctx, rootCommand(), []string{"dump", "--follow", "--json", file.Name()}, cli.Streams{Out: &fromFile, Err: io.Discard})
	})
	finish := operate(t, io.MultiWriter(w, file))
	for _, text := range []string{
		"[cm: REQ version=1 suite=1 mode=B", "[cm: REP ", "[cm: FIN ", "[rma: HELLO ", "[rma: OPEN_REQ ", "[rma: OPEN_REP ", "[rma: READ_REQ ", "[rma: READ_DONE ",
	} {
		fromPipe.waitFor(t, text)
	}
	fromFile.waitFor(t, `"message":"READ_DONE"`)
	finish()
	require.NoError(t, w.Close())
	pipeEnds.Wait() // at the end of the pipe, and not of ctx
	fromFile.waitFor(t, `"kind":"end"`)
	stop()
	fileEnds.Wait()
	require.Equal(t, [2]int{cli.Done, cli.Interrupted}, status)
	require.NotContains(t, fromPipe.String(), "!")
	for _, o := range objects(t, fromFile.String()) {
		require.NotContains(t, o, "errors")
	}
}

// TestFollowedPipeEndsWithItsWriter: nothing can come behind its end, so a wait for more would last until Ctrl-C.
func TestFollowedPipeEndsWithItsWriter(t *testing.T) {
	capture, err := os.ReadFile(captures + "rping.pcap")
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	go func() {
		_, _ = w.Write(capture)
		_ = w.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	require.Equal(t, cli.Done, cli.Main(ctx, rootCommand(), []string{"dump", "--follow", "-"}, cli.Streams{In: r, Out: &out, Err: &errs}), errs.String())
	require.Contains(t, out.String(), "MPA Request")
}

// operate makes a connection with authentication, on which memory is read. finish ends it.
func operate(t *testing.T, trace io.Writer) (finish func()) {
	ctx := t.Context()
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	pd, err := rnic.AllocPD()
	require.NoError(t, err)
	ring, err := cm.NewRing(cm.Key{ID: 1, Secret: []byte("thirty-two octets, random ones !"), Primary: true})
	require.NoError(t, err)
	auth := func() *cm.Auth {
		a, err := cm.New(&cm.Config{Ring: ring})
		require.NoError(t, err)
		return a
	}
	server := rma.NewServer(&rma.ServerConfig{PD: pd, PullTimeout: 10 * time.Second})
	_, err = server.Register(7, rma.NewMemory(make([]byte, 4096)), nil)
	require.NoError(t, err)
	listener, err := rnic.Listen(ctx, "tcp", "127.0.0.1:0", &iwarp.ListenConfig{Auth: auth()})
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() {
		_ = listener.Serve(ctx, func(request *iwarp.ConnRequest) {
			cfg := iwarp.QPConfig{PD: pd}
			if rma.Prepare(rnic, &cfg, 64, 0) != nil {
				return
			}
			if qp, err := request.Accept(ctx, &cfg); err == nil {
				_ = server.Serve(ctx, qp)
			}
		})
	})
	cfg := iwarp.QPConfig{PD: pd, Auth: auth(), Trace: trace}
	require.NoError(t, rma.Prepare(rnic, &cfg, 0, 64))
	qp, err := rnic.Dial(ctx, "tcp", listener.Addr().String(), &cfg)
	require.NoError(t, err)
	client, err := rma.NewClient(ctx, qp, &rma.ClientConfig{PD: pd, OpTimeout: 20 * time.Second})
	require.NoError(t, err)
	handle, err := client.Open(ctx, 7, rma.MayRead)
	require.NoError(t, err)
	portal, err := client.Portal(1)
	require.NoError(t, err)
	_, err = portal.Post(rma.Command{Op: rma.Read, Handle: handle, Buf: make([]byte, 64)})
	require.NoError(t, err)
	var completions [1]rma.Completion
	_, err = portal.Wait(ctx, completions[:])
	require.NoError(t, err)
	require.NoError(t, completions[0].Err)
	return func() {
		require.NoError(t, client.Close())
		require.NoError(t, listener.Close())
		served.Wait()
		require.NoError(t, rnic.Close())
	}
}
