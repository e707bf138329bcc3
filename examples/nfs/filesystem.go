package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5"
)

// A filesystem is a directory, as go-nfs wants one. No path leads out of it, whatever links a client makes.
type filesystem struct {
	root     *os.Root
	dir      string // its absolute path
	device   uint64 // that it is on
	readOnly bool
	handles  *handles
	modes    sync.Mutex // held while the mode of a file changes
	lately   lately     // written by clients
	places   places     // in listings
}

func newFilesystem(dir string, readOnly bool) (*filesystem, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Lstat(".")
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	f := &filesystem{root: root, dir: dir, device: deviceOf(info), readOnly: readOnly}
	f.handles = newHandles(f)
	return f, nil
}

// local is a path as os.Root wants it.
func local(path string) string {
	if path == "" {
		return "."
	}
	return filepath.Clean(path)
}

// A file is one that is open. go-nfs uses no locks. It neither closes nor uses a file after a call that has failed, so such a call closes
// it: else a file that was removed would keep its room on the disk until a garbage collection.
type file struct {
	*os.File
	name string
}

// Name is the name that the file was opened by, as go-nfs needs it: that of an os.File of a Root leads out of the Root.
func (f file) Name() string { return f.name }

func (file) Lock() error   { return nil }
func (file) Unlock() error { return nil }

func (f file) Seek(offset int64, whence int) (int64, error) {
	at, err := f.File.Seek(offset, whence)
	return at, f.closeAfter(err)
}

func (f file) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.closeAfter(err)
}

func (f file) Truncate(size int64) error { return f.closeAfter(f.File.Truncate(size)) }

func (f file) closeAfter(err error) error {
	if err != nil {
		_ = f.Close()
	}
	return err
}

// Create makes a file, or opens one that another client has made since the caller looked: go-nfs empties it afterwards if its client wants
// that, and else nothing of it may be lost (RFC 1813 section 3.3.8).
func (f *filesystem) Create(name string) (billy.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
}

// Open opens a file for reading.
func (f *filesystem) Open(name string) (billy.File, error) {
	return f.OpenFile(name, os.O_RDONLY, 0)
}

// OpenFile opens a file or a directory. It is the client's own system that opens pipes and devices.
func (f *filesystem) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if f.readOnly && flag != os.O_RDONLY {
		return nil, fs.ErrPermission
	}
	o, err := f.root.OpenFile(local(name), flag|noWait, perm.Perm())
	if errors.Is(err, fs.ErrPermission) && !f.readOnly {
		o, err = f.openOwn(local(name), flag|noWait, err)
	}
	if err != nil {
		return nil, err
	}
	info, err := o.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	if err != nil {
		_ = o.Close()
		return nil, err
	}
	if flag != os.O_RDONLY {
		f.lately.add(info)
	}
	return file{o, name}, nil
}

// Stat tells of the file that a link leads to.
func (f *filesystem) Stat(name string) (os.FileInfo, error) { return f.root.Stat(local(name)) }

// Lstat tells of a file or a link.
func (f *filesystem) Lstat(name string) (os.FileInfo, error) { return f.root.Lstat(local(name)) }

// Rename moves a file. Handles follow it.
func (f *filesystem) Rename(from, to string) error {
	if f.readOnly {
		return fs.ErrPermission
	}
	renamed := f.handles.rename(local(from), local(to))
	if err := f.rename(local(from), local(to)); err != nil {
		return err
	}
	renamed()
	return nil
}

// Remove removes a file, or an empty directory.
func (f *filesystem) Remove(name string) error {
	if f.readOnly {
		return fs.ErrPermission
	}
	removed := f.handles.remove(local(name))
	if err := f.root.Remove(local(name)); err != nil {
		return err
	}
	removed()
	return nil
}

// Join makes a path. That of the root is empty.
func (f *filesystem) Join(elem ...string) string { return filepath.Join(elem...) }

// ReadDir lists a directory, with the places of its names.
func (f *filesystem) ReadDir(path string) ([]os.FileInfo, error) {
	d, err := f.root.OpenFile(local(path), os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	self, err := d.Stat()
	if err != nil {
		return nil, err
	}
	contents, err := d.Readdir(-1)
	if err != nil {
		return nil, err
	}
	return f.places.put(local(path), contents, self, time.Now()), nil
}

// MkdirAll makes a directory. It fails if there is one: another client may have made it since go-nfs has looked, and only one may be told
// that it has. Those above it are there.
func (f *filesystem) MkdirAll(name string, perm os.FileMode) error {
	if f.readOnly {
		return fs.ErrPermission
	}
	return f.root.Mkdir(local(name), perm.Perm())
}

// Symlink makes a link, to anything: it is the client that follows it.
func (f *filesystem) Symlink(target, link string) error {
	if f.readOnly {
		return fs.ErrPermission
	}
	return f.root.Symlink(target, local(link))
}

// Readlink tells where a link leads.
func (f *filesystem) Readlink(link string) (string, error) { return f.root.Readlink(local(link)) }

// Chmod changes rights. A link has none, whatever those are that a client makes one with; and those of the file that it leads to were
// not asked for: go-nfs has followed no link.
func (f *filesystem) Chmod(name string, mode os.FileMode) error {
	info, err := f.Lstat(name)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	f.modes.Lock()
	defer f.modes.Unlock()
	return f.root.Chmod(local(name), mode)
}

// Lchown changes the owner of a file, or of a link.
func (f *filesystem) Lchown(name string, uid, gid int) error {
	return f.root.Lchown(local(name), uid, gid)
}

// Chown changes the owner of the file that a link leads to.
func (f *filesystem) Chown(name string, uid, gid int) error {
	return f.root.Chown(local(name), uid, gid)
}

// Capabilities tells whether it can be written.
func (f *filesystem) Capabilities() billy.Capability {
	if f.readOnly {
		return billy.ReadCapability | billy.SeekCapability
	}
	return billy.DefaultCapabilities
}

var errNotUsed = errors.New("nfs: go-nfs does not use it")

// TempFile is not used.
func (f *filesystem) TempFile(string, string) (billy.File, error) { return nil, errNotUsed }

// Chroot is not used.
func (f *filesystem) Chroot(string) (billy.Filesystem, error) { return nil, errNotUsed }

// Root is the path of the directory.
func (f *filesystem) Root() string { return f.dir }
