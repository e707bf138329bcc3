package main

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/lru"
)

// The server remembers a limited number of files that clients have made or written, for some time.
const (
	latelyTime  = 10 * time.Minute
	latelyFiles = 4096
)

// lately holds the numbers of files that clients have made or written, each with the time of the last call.
type lately struct {
	mu    sync.Mutex
	files *lru.Map[uint64, time.Time]
}

func (l *lately) add(info fs.FileInfo) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = lru.New[uint64, time.Time](latelyFiles)
	}
	l.files.Put(st.Ino, time.Now())
}

// has reports whether a file is one of them, and belongs to the user that the server runs as.
func (l *lately) has(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || int(st.Uid) != os.Geteuid() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		return false
	}
	when, ok := l.files.Get(st.Ino)
	return ok && time.Since(when) < latelyTime
}

// openOwn opens a file whose mode keeps the server from opening it, although a client may have it open: the client has written it recently,
// or has made it with that mode, like cp of a read-only file. NFS has no open files, so a server lets the owner read and write whatever the
// mode is (RFC 1813 section 4.4). To do so, it changes the mode for a moment. For any other file it returns the error refused.
func (f *filesystem) openOwn(name string, flag int, refused error) (o *os.File, err error) {
	if flag&os.O_CREATE != 0 {
		return nil, refused
	}
	p, err := f.root.OpenFile(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, refused
	}
	defer func() { _ = p.Close() }()
	f.modes.Lock()
	defer f.modes.Unlock()
	info, err := p.Stat()
	if err != nil || !f.lately.has(info) {
		return nil, refused
	}
	self := "/proc/self/fd/" + strconv.Itoa(int(p.Fd())) // the file itself, whatever the name leads to by now
	if os.Chmod(self, info.Mode()|0o600) != nil {
		return nil, refused
	}
	o, err = os.OpenFile(self, flag, 0)
	if restored := os.Chmod(self, info.Mode()); restored != nil && err == nil {
		return nil, errors.Join(restored, o.Close())
	}
	return o, err
}
