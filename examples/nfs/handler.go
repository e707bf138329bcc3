package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"math"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/willscott/go-nfs"
)

// A handler is what go-nfs asks.
type handler struct {
	fs       *filesystem
	listings listings
}

func newHandler(f *filesystem) *handler { return &handler{fs: f} }

// Mount gives the directory to any client, as "/".
func (h *handler) Mount(_ context.Context, _ net.Conn, req nfs.MountRequest) (nfs.MountStatus, billy.Filesystem, []nfs.AuthFlavor) {
	if path.Clean("/"+string(req.Dirpath)) != "/" {
		return nfs.MountStatusErrNoEnt, h.fs, nil
	}
	return nfs.MountStatusOk, h.fs, []nfs.AuthFlavor{nfs.AuthFlavorNull, nfs.AuthFlavorUnix}
}

// Change changes attributes.
func (h *handler) Change(billy.Filesystem) billy.Change {
	if h.fs.readOnly {
		return nil
	}
	return h.fs
}

// FSStat tells how much there is, and how much is free.
func (h *handler) FSStat(_ context.Context, _ billy.Filesystem, s *nfs.FSStat) error {
	return h.fs.statfs(s)
}

// ToHandle returns the handle of a file.
func (h *handler) ToHandle(_ billy.Filesystem, elems []string) []byte {
	return h.fs.handles.of(local(filepath.Join(elems...)))
}

// FromHandle finds the file of a handle.
func (h *handler) FromHandle(handle []byte) (billy.Filesystem, []string, error) {
	p, ok := h.fs.handles.path(handle)
	if !ok {
		return nil, nil, &nfs.NFSStatusError{NFSStatus: nfs.NFSStatusStale, WrappedErr: fs.ErrNotExist}
	}
	if p == "." {
		return h.fs, []string{}, nil
	}
	elems := strings.Split(p, string(filepath.Separator))
	return h.fs, elems[:len(elems):len(elems)], nil // go-nfs appends to it
}

// InvalidateHandle is called when a file was removed or renamed.
func (h *handler) InvalidateHandle(_ billy.Filesystem, handle []byte) error {
	h.fs.handles.removed(handle)
	return nil
}

// HandleLimit is how many handles there may be: they are not stored.
func (h *handler) HandleLimit() int { return math.MaxInt32 }

// keptListings is how many listings of directories are kept for clients that read them piece by piece.
const keptListings = 32

// listings are those of directories that were read last, by verifier.
type listings struct {
	mu  sync.Mutex
	all [keptListings]listing
	at  int
}

type listing struct {
	path     string
	verifier uint64
	contents []fs.FileInfo
}

// VerifierFor keeps a listing, and returns its verifier, which depends on the path and the names alone: it is the same
// after the server was started again.
func (h *handler) VerifierFor(path string, contents []os.FileInfo) uint64 {
	sum := sha256.New()
	add := func(s string) {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
		_, _ = sum.Write([]byte(s))
	}
	add(path)
	for _, c := range contents {
		add(c.Name())
	}
	l := listing{path, binary.BigEndian.Uint64(sum.Sum(nil)), contents}
	h.listings.mu.Lock()
	defer h.listings.mu.Unlock()
	for i := range h.listings.all {
		if old := &h.listings.all[i]; old.contents != nil && old.verifier == l.verifier && old.path == path {
			*old = l // sizes and times are new
			return l.verifier
		}
	}
	h.listings.all[h.listings.at] = l
	h.listings.at = (h.listings.at + 1) % keptListings
	return l.verifier
}

// DataForVerifier returns a listing that was kept; nil: there is none.
func (h *handler) DataForVerifier(path string, verifier uint64) []os.FileInfo {
	h.listings.mu.Lock()
	defer h.listings.mu.Unlock()
	for i := range h.listings.all {
		if l := &h.listings.all[i]; l.contents != nil && l.verifier == verifier && l.path == path {
			return l.contents
		}
	}
	return nil
}
