package main

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/lru"
)

// An identity identifies a file uniquely, also after a rename: its number, and when it was made.
type identity struct{ number, born uint64 }

// handleLen is the length of a file handle: the export, and the identity.
const handleLen = 24

// searchPause is the minimum time between two searches through all files, which clients can cause.
const searchPause = time.Second

// goneFiles is how many removed files are remembered.
const goneFiles = 4096

// looks is how many files add checks: more than one, so that the number of removed files falls.
const looks = 2

// handles holds the file handles of an export. A handle contains the identity of its file, so that it stays valid when the
// server is restarted. The path is known of files that clients have looked up; other files, and files that were renamed
// on this host, are searched for.
type handles struct {
	f      *filesystem
	export uint64
	pause  time.Duration // minimum time between two searches

	mu       sync.Mutex
	paths    map[identity]string
	gone     *lru.Map[identity, struct{}] // files that clients have removed, for which no search is made
	searches int                          // number of searches that have begun

	search sync.Mutex // held during a search; before mu
	last   time.Time  // the end of the last search
}

func newHandles(f *filesystem) *handles {
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.dir))
	return &handles{
		f: f, export: h.Sum64(), pause: searchPause,
		paths: make(map[identity]string), gone: lru.New[identity, struct{}](goneFiles),
	}
}

// of returns the handle of a path. If the file does not exist, or is on another file system than the directory, the handle names no file.
func (h *handles) of(path string) []byte {
	id, err := h.f.identify(path)
	if err == nil {
		h.add(id, path)
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, handleLen), h.export)
	b = binary.BigEndian.AppendUint64(b, id.number)
	return binary.BigEndian.AppendUint64(b, id.born)
}

// add records where a file is. For each new file it checks some others, and forgets those that are gone: programs of this host remove
// files without a call, so otherwise more files would be remembered than exist.
func (h *handles) add(id identity, path string) {
	h.mu.Lock()
	_, known := h.paths[id]
	h.paths[id] = path
	h.gone.Delete(id) // another file may have the same identity
	some := make(map[identity]string, looks)
	for id, path := range h.paths { // at random
		if known || len(some) == looks {
			break
		}
		some[id] = path
	}
	h.mu.Unlock()
	for id, path := range some {
		now, err := h.f.identify(path)
		if err == nil && now == id || err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		h.mu.Lock()
		if h.paths[id] == path {
			delete(h.paths, id)
		}
		h.mu.Unlock()
	}
}

// path returns the path of a handle's file.
func (h *handles) path(handle []byte) (string, bool) {
	if len(handle) != handleLen || binary.BigEndian.Uint64(handle) != h.export {
		return "", false
	}
	id := identity{binary.BigEndian.Uint64(handle[8:]), binary.BigEndian.Uint64(handle[16:])}
	if id == (identity{}) {
		return "", false
	}
	path, ok, searches := h.known(id)
	if !ok && !h.isGone(id) {
		h.searchAll(searches)
		path, ok, _ = h.known(id)
	}
	return path, ok
}

func (h *handles) isGone(id identity) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, gone := h.gone.Get(id)
	return gone
}

// known returns the recorded path of a file, if the file is still there.
func (h *handles) known(id identity) (path string, ok bool, searches int) {
	h.mu.Lock()
	path, ok = h.paths[id]
	searches = h.searches
	h.mu.Unlock()
	if !ok {
		return "", false, searches
	}
	now, err := h.f.identify(path)
	return path, err == nil && now == id, searches
}

// searchAll searches all files, unless a further search has begun since there were before of them.
func (h *handles) searchAll(before int) {
	h.search.Lock()
	defer h.search.Unlock()
	h.mu.Lock()
	begun := h.searches
	h.mu.Unlock()
	if begun > before {
		return
	}
	time.Sleep(time.Until(h.last.Add(h.pause)))
	h.mu.Lock()
	h.searches++
	h.mu.Unlock()
	found := make(map[identity]string)
	_ = fs.WalkDir(h.f.root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // files that cannot be read have no handles
		}
		path = filepath.FromSlash(path)
		id, err := h.f.identify(path)
		switch {
		case err == nil:
			found[id] = path
		case entry.IsDir():
			return fs.SkipDir // on another file system, or gone
		}
		return nil
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.Copy(h.paths, found)
	h.last = time.Now()
}

// rename is called before a rename. The returned function makes the handles of a file, or of a directory and all that is in it, follow the
// rename, and forgets the handle of a file that was replaced. It goes through all known files only if a directory was renamed.
func (h *handles) rename(from, to string) (renamed func()) {
	if from == to {
		return func() {}
	}
	info, err := h.f.Lstat(from)
	id, unknown := h.f.identify(from)
	replaced := h.remove(to)
	return func() {
		replaced()
		if err != nil || info.IsDir() {
			h.renamedDirectory(from, to)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if unknown == nil {
			h.paths[id] = to
			h.gone.Delete(id)
		}
	}
}

// remove is called before a name is removed. The returned function forgets the file, unless it has other names.
func (h *handles) remove(path string) (removed func()) {
	info, none := h.f.Lstat(path)
	id, unknown := h.f.identify(path)
	if none != nil || unknown != nil || !lastName(info) {
		return func() {}
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if now, ok := h.paths[id]; ok && now != path {
			return // the file was renamed meanwhile
		}
		delete(h.paths, id)
		h.gone.Put(id, struct{}{})
	}
}

func (h *handles) renamedDirectory(from, to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, path := range h.paths {
		if rest, ok := below(path, from); ok {
			h.paths[id] = filepath.Join(to, rest)
		} else if _, ok := below(path, to); ok {
			delete(h.paths, id)
		}
	}
}

// below reports whether path is above or below it, and returns the rest of path: "" if both are equal.
func below(path, above string) (rest string, ok bool) {
	if path == above {
		return "", true
	}
	return strings.CutPrefix(path, above+string(filepath.Separator))
}

// removed forgets the handle of a file that no longer exists.
func (h *handles) removed(handle []byte) {
	if len(handle) != handleLen {
		return
	}
	id := identity{binary.BigEndian.Uint64(handle[8:]), binary.BigEndian.Uint64(handle[16:])}
	if _, ok, _ := h.known(id); !ok {
		h.mu.Lock()
		delete(h.paths, id)
		h.mu.Unlock()
	}
}
