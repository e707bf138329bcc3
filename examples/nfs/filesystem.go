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

// A filesystem is a directory in the form that go-nfs requires. No path leads out of it, whatever links a client makes.
type filesystem struct {
	root     *os.Root
	dir      string // its absolute path
	device   uint64 // that the directory is on
	readOnly bool
	handles  *handles
	modes    sync.Mutex // held while the mode of a file changes
	lately   lately     // files recently written by clients
	places   places     // places of names in listings
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

// local returns a path in the form that os.Root requires.
func local(path string) string {
	if path == "" {
		return "."
	}
	return filepath.Clean(path)
}

// A file is an open file. go-nfs uses no locks. After a failed call it neither closes nor uses a file, so the failed call closes the file:
// otherwise a removed file would keep its room on the disk until a garbage collection.
type file struct {
	*os.File
	name string
}

// Name returns the name with which the file was opened, as go-nfs requires: the name of an os.File of a Root leads out of the Root.
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

// Create makes a file, or opens one that another client has made since the caller checked: go-nfs truncates it afterwards if its client
// requests that, and otherwise none of its contents may be lost (RFC 1813 section 3.3.8).
func (f *filesystem) Create(name string) (billy.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
}

// Open opens a file for reading.
func (f *filesystem) Open(name string) (billy.File, error) {
	return f.OpenFile(name, os.O_RDONLY, 0)
}

// OpenFile opens a file or a directory. Pipes and devices are opened by the client's own system.
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

// Stat describes the file that a link leads to.
func (f *filesystem) Stat(name string) (os.FileInfo, error) { return f.root.Stat(local(name)) }

// Lstat describes a file or a link.
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

// Join makes a path. The path of the root is empty.
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

// MkdirAll makes a directory. It fails if the directory exists: another client may have made it since go-nfs checked, and only one client
// may get a success. The parent directories exist.
func (f *filesystem) MkdirAll(name string, perm os.FileMode) error {
	if f.readOnly {
		return fs.ErrPermission
	}
	return f.root.Mkdir(local(name), perm.Perm())
}

// Symlink makes a link to any target: only the client follows it.
func (f *filesystem) Symlink(target, link string) error {
	if f.readOnly {
		return fs.ErrPermission
	}
	return f.root.Symlink(target, local(link))
}

// Readlink returns the target of a link.
func (f *filesystem) Readlink(link string) (string, error) { return f.root.Readlink(local(link)) }

// Chmod changes permissions. A link has none, whatever permissions a client gives it when it makes the link. The call does not concern the
// file that a link leads to: go-nfs has followed no link.
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

// Capabilities reports whether the file system can be written.
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

// Root returns the path of the directory.
func (f *filesystem) Root() string { return f.dir }
