package transfer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/goiwarp/iwarp/internal/fsync"
)

// A fileBuffer makes an open file an iwarp.Buffer, "a disk file" in the words of
// RFC 4296 section 2.
type fileBuffer struct {
	*os.File
	size int64
}

func (b fileBuffer) Size() int64 { return b.size }

// sum returns the SHA-256 of the file in hexadecimal.
func (b fileBuffer) sum(ctx context.Context) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, reader{ctx, io.NewSectionReader(b, 0, b.size)})
	if err == nil && n != b.size {
		err = fmt.Errorf("%s has become shorter", b.Name())
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// quietly closes c, which was only read, or has failed already.
func quietly(c io.Closer) { _ = c.Close() }

// A reader fails when its context ends, with the cause of the context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// openBelow opens a regular file below root for a peer.
func openBelow(root *os.Root, name string) (fileBuffer, error) {
	return open(name, root.Stat, root.Open)
}

// open opens a regular file. It refuses other files, which could block, or never end.
func open(name string, stat func(string) (fs.FileInfo, error), openFile func(string) (*os.File, error)) (fileBuffer, error) {
	info, err := stat(name)
	switch {
	case err != nil:
		return fileBuffer{}, pathError("open", name, err)
	case !info.Mode().IsRegular():
		return fileBuffer{}, notRegular("open", name)
	}
	f, err := openFile(name)
	if err != nil {
		return fileBuffer{}, err
	}
	if info, err = f.Stat(); err != nil {
		quietly(f)
		return fileBuffer{}, err
	}
	return fileBuffer{f, info.Size()}, nil
}

// pathError returns err with an operation and the name by which the user knows the file. An error of an os.Root names a system
// call instead, and sometimes a temporary file.
func pathError(op, name string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: op, Path: name, Err: pe.Err}
	}
	return err
}

func notRegular(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: errors.New("not a regular file")}
}

// localName checks a name that came from the network and converts it to a name of this
// system. os.Root then ensures that it leads nowhere outside the directory, not even
// through a symbolic link.
func localName(name string) (string, error) {
	if len(name) > maxText {
		return "", fmt.Errorf("a name of %d octets, at most %d", len(name), maxText)
	}
	local, err := filepath.Localize(name)
	if err != nil || local == "." {
		return "", fmt.Errorf("%q is not a name of a file below the directory", name)
	}
	return local, nil
}

// An incoming is a file that is being received. Until keep it has a temporary name in the
// directory of its final one, so that an incomplete file never has the final name.
type incoming struct {
	fileBuffer
	root       *os.Root
	name, temp string
}

// create makes an incoming of the given size, filled with zeros. It gets the permissions of the file that it replaces before it
// has any content.
func create(root *os.Root, name string, size int64) (*incoming, error) {
	if size < 0 || size > maxSize {
		return nil, fmt.Errorf("a file of %d octets, at most %d", size, int64(maxSize))
	}
	old, err := replaced(root, name)
	if err != nil {
		return nil, err
	}
	rights := fs.FileMode(0o666)
	if old != nil {
		rights = 0o600
	}
	temp := filepath.Join(filepath.Dir(name), ".part-"+rand.Text()[:8]) // not derived from name, which may have the maximum length
	f, err := root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, rights)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	in := &incoming{fileBuffer{f, size}, root, name, temp}
	if old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = lengthen(f, size)
	}
	if err != nil {
		in.discard()
		return nil, pathError("create", name, err)
	}
	return in, nil
}

// replaced returns the regular file with the name, nil if there is none or a symbolic link, which is not followed. A file that replaces
// another one gets its permissions. Nothing but regular files and symbolic links is replaced.
func replaced(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, pathError("create", name, err)
	case info.Mode().IsRegular():
		return info, nil
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil
	}
	return nil, notRegular("replace", name)
}

// keep writes the file to the disk and gives it its name, replacing a file of that name. Then it writes the name to the disk,
// too, if the system can: Windows and some file systems cannot. If the directory cannot even be opened, the file does not get
// its name: a client that is told of a failure finds nothing.
func (in *incoming) keep() error {
	if err := fsync.File(in.File); err != nil {
		return err
	}
	if err := in.Close(); err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return in.root.Rename(in.temp, in.name)
	}
	dir, err := in.root.Open(filepath.Dir(in.name))
	if err != nil {
		return err
	}
	defer quietly(dir)
	if err := in.root.Rename(in.temp, in.name); err != nil {
		return err
	}
	return unlessUnable(fsync.File(dir))
}

// unlessUnable returns the error of the sync of a directory, or nil if the file system cannot sync directories, such as CIFS: the
// file is as durable there as it can be.
func unlessUnable(err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// discard removes the file. After keep it does nothing.
func (in *incoming) discard() {
	quietly(in)
	_ = in.root.Remove(in.temp)
}
