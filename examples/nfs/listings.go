package main

import (
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// keptListings is how many directory listings are kept for clients that read them piece by piece, and keptEntries is how many entries
// they may have together. The latest listing is kept whatever its length.
const (
	keptListings = 32
	keptEntries  = 1 << 18
)

// listings holds the listings of the directories that were read last, by verifier.
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

// VerifierFor puts the entries of a listing in their places, keeps it, and returns its verifier, which depends only on the path and the
// names: it is the same after a restart of the server, unless names were removed shortly before.
func (h *handler) VerifierFor(path string, contents []os.FileInfo) uint64 {
	slices.SortStableFunc(contents, func(a, b os.FileInfo) int { return placeOf(a) - placeOf(b) })
	sum := sha256.New()
	add := func(s string) {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
		_, _ = sum.Write([]byte(s))
	}
	add(path)
	for _, c := range contents {
		add(c.Name())
	}
	l := listing{path, binary.BigEndian.Uint64(sum.Sum(nil)), entries(h.fs, path, contents)}
	h.listings.mu.Lock()
	defer h.listings.mu.Unlock()
	for i := range h.listings.all {
		if old := &h.listings.all[i]; old.contents != nil && old.verifier == l.verifier && old.path == path {
			*old = l
			return l.verifier
		}
	}
	h.listings.add(l)
	return l.verifier
}

// add adds a listing. It replaces the oldest listing, and further ones if there are too many entries.
func (s *listings) add(l listing) {
	s.all[s.at] = l
	s.at = (s.at + 1) % keptListings
	entries := 0
	for i := range s.all {
		entries += len(s.all[i].contents)
	}
	for i := 0; i < keptListings-1 && entries > keptEntries; i++ {
		old := &s.all[(s.at+i)%keptListings]
		entries -= len(old.contents)
		*old = listing{}
	}
}

// DataForVerifier returns a kept listing, nil if there is none.
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

// entries returns the entries of a listing in the form in which they are kept.
func entries(from *filesystem, dir string, contents []fs.FileInfo) []fs.FileInfo {
	kept, all := make([]fs.FileInfo, len(contents)), make([]entry, len(contents))
	for i, info := range contents {
		all[i].listed, all[i].dir, all[i].from = info, dir, from
		kept[i] = &all[i]
	}
	return kept
}

// An entry is an entry of a kept listing. It describes the file that has its name now: a client takes that for the file whose handle it
// also gets, and the listed file may have been written or replaced. If the file is gone, it describes the listed one. go-nfs calls Mode
// first, so only Mode examines the file.
type entry struct {
	listed fs.FileInfo
	dir    string
	from   *filesystem
	now    atomic.Pointer[fs.FileInfo] // nil: the file was not examined
}

func (e *entry) latest() fs.FileInfo {
	if now := e.now.Load(); now != nil {
		return *now
	}
	return e.listed
}

func (e *entry) Mode() fs.FileMode {
	if now, err := e.from.Lstat(filepath.Join(e.dir, e.Name())); err == nil {
		e.now.Store(&now)
	}
	return e.latest().Mode()
}

func (e *entry) Name() string       { return e.listed.Name() }
func (e *entry) Size() int64        { return e.latest().Size() }
func (e *entry) ModTime() time.Time { return e.latest().ModTime() }
func (e *entry) IsDir() bool        { return e.latest().IsDir() }
func (e *entry) Sys() any           { return e.latest().Sys() }
