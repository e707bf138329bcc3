package main

import (
	"context"
	"io/fs"
	"math"
	"net"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/willscott/go-nfs"
)

// A handler implements the Handler of go-nfs.
type handler struct {
	fs       *filesystem
	listings listings
}

func newHandler(f *filesystem) *handler { return &handler{fs: f} }

// Mount lets any client mount the directory, as "/".
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

// FSStat reports the size of the file system, and how much of it is free.
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
	return h.fs, elems[:len(elems):len(elems)], nil // go-nfs appends to the slice
}

// InvalidateHandle is called when a file was removed or renamed.
func (h *handler) InvalidateHandle(_ billy.Filesystem, handle []byte) error {
	h.fs.handles.removed(handle)
	return nil
}

// HandleLimit returns how many handles there may be: any number, because they are not stored.
func (h *handler) HandleLimit() int { return math.MaxInt32 }
