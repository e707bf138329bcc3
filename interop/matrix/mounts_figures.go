package matrix

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// figureOctets is the size of the file that is read.
const figureOctets = 256 << 20

// mountFigures read a file over RDMA and over TCP, from one server, in turns. One machine does all the work: if it is emulated, the
// figures say nothing about speed, and no case fails because of them.
func mountFigures() []Case {
	c := func(name string) Case {
		return Case{Name: name, Role: Responder, Figures: true, NoCapture: true, Limit: 15 * time.Minute}
	}
	return slices.Concat(crcBoth(c("9p/figures"), (*T).figures9P), crcBoth(c("nfs/figures"), (*T).figuresNFS))
}

// A way is how a server is mounted.
type way struct{ name, kind, source, options string }

func (t *T) figures9P(crc bool) {
	const port = "564"
	dir := t.largeDirectory()
	p := t.serve9P(crc, dir, "-tcp", OurSecondIP+":"+port)
	const common = ",version=9p2000.L,access=any,msize=1048576"
	t.compareReads(
		way{"rdma", "9p", OurIP, "trans=rdma,port=" + ninepPort + common},
		way{"tcp", "9p", OurSecondIP, "trans=tcp,port=" + port + common})
	t.stopsWell(p)
}

func (t *T) figuresNFS(crc bool) {
	const port = "2049"
	dir := t.largeDirectory()
	p := t.serveNFSAt(OurIP, crc, dir, "-tcp", OurSecondIP+":"+port)
	const tcp = "vers=3,proto=tcp,port=" + port + ",mountproto=tcp,mountport=" + nfsMountPort + ",nolock,mountvers=3,addr=" + OurSecondIP + ",mountaddr=" + OurSecondIP
	t.compareReads(way{"rdma", "nfs", OurIP + ":/", nfsOptions()}, way{"tcp", "nfs", OurSecondIP + ":/", tcp})
	t.stopsWell(p)
}

// largeDirectory makes a directory with the file.
func (t *T) largeDirectory() string {
	dir, err := os.MkdirTemp("/tmp", "export")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, writeRandom(filepath.Join(dir, "large"), 1, figureOctets))
	return dir
}

// compareReads reports the medians of the rounds, and the ratio of the first to the second.
func (t *T) compareReads(ways ...way) {
	rates := make([][]float64, len(ways))
	for range rounds {
		for i, w := range ways {
			t.mountFrom(w.kind, w.source, w.options)
			dropCaches(t)
			began := time.Now()
			n, err := readAll(filepath.Join(mountPoint, "large"))
			require.NoError(t, err, w.name)
			require.EqualValues(t, figureOctets, n, w.name)
			rates[i] = append(rates[i], float64(n)/1e6/time.Since(began).Seconds())
			t.unmount()
		}
	}
	first, second := median(rates[0]), median(rates[1])
	t.figure("%s %.0f MB/s, %s %.0f MB/s: %.2f", ways[0].name, first, ways[1].name, second, first/second)
}

// readAll reads a file, 1 MiB at a time.
func readAll(name string) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	if err != nil {
		err = fmt.Errorf("after %d octets: %w", n, err)
	}
	return n, errors.Join(err, f.Close())
}
