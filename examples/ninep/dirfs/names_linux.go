package dirfs

import (
	"errors"

	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"
	"golang.org/x/sys/unix"
)

// makes makes an entry of the directory, sets its group, if the process may, and returns its QID.
func (f *file) makes(name string, gid p9.GID, mk func(dir int) error) (p9.QID, error) {
	if err := checkName(name); err != nil {
		return p9.QID{}, err
	}
	if err := f.with(mk); err != nil {
		return p9.QID{}, err
	}
	c, err := f.child(name)
	if err != nil {
		return p9.QID{}, err
	}
	defer func() { _ = c.Close() }()
	if err := c.setGroup(gid); err != nil {
		return p9.QID{}, err
	}
	st, err := c.stat()
	if err != nil {
		return p9.QID{}, err
	}
	return c.qid(st), nil
}

// setGroup gives a new file to the client's group. If the process may not do so, the file keeps the process's group.
func (f *file) setGroup(gid p9.GID) error {
	if !gid.Ok() {
		return nil
	}
	err := f.with(func(fd int) error { return unix.Fchownat(fd, "", -1, int(gid), unix.AT_EMPTY_PATH) })
	if errors.Is(err, linux.EPERM) {
		return nil
	}
	return err
}

// Mkdir makes a directory.
func (f *file) Mkdir(name string, mode p9.FileMode, _ p9.UID, gid p9.GID) (p9.QID, error) {
	return f.makes(name, gid, func(dir int) error { return unix.Mkdirat(dir, name, uint32(mode)&0o7777) })
}

// Symlink makes a symbolic link, with any target: the server never follows it.
func (f *file) Symlink(target, name string, _ p9.UID, gid p9.GID) (p9.QID, error) {
	return f.makes(name, gid, func(dir int) error { return unix.Symlinkat(target, dir, name) })
}

// Readlink returns the target of a symbolic link.
func (f *file) Readlink() (string, error) {
	b := make([]byte, unix.PathMax)
	var n int
	err := f.with(func(fd int) (err error) {
		n, err = unix.Readlinkat(fd, "", b)
		return err
	})
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

// Mknod makes named pipes, sockets and regular files; a device node would refer to a device of the server's machine.
func (f *file) Mknod(name string, mode p9.FileMode, _, _ uint32, _ p9.UID, gid p9.GID) (p9.QID, error) {
	if !mode.IsNamedPipe() && !mode.IsSocket() && !mode.IsRegular() {
		return p9.QID{}, linux.EPERM
	}
	return f.makes(name, gid, func(dir int) error { return unix.Mknodat(dir, name, uint32(mode), 0) })
}

// Link makes a further name for target, which is not followed if it is a symbolic link.
func (f *file) Link(target p9.File, name string) error {
	t, ok := target.(*file)
	if !ok {
		return linux.EXDEV
	}
	if err := checkName(name); err != nil {
		return err
	}
	return f.with(func(dir int) error {
		return t.with(func(fd int) error {
			return unix.Linkat(unix.AT_FDCWD, self(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
		})
	})
}

// RenameAt renames an entry, also into another directory and onto an existing one.
func (f *file) RenameAt(oldName string, newDir p9.File, newName string) error {
	to, ok := newDir.(*file)
	if !ok {
		return linux.EXDEV
	}
	if err := checkName(oldName, newName); err != nil {
		return err
	}
	return f.with(func(from int) error {
		return to.with(func(dir int) error { return unix.Renameat(from, oldName, dir, newName) })
	})
}

// UnlinkAt removes an entry; the flag AT_REMOVEDIR says that it is a directory.
func (f *file) UnlinkAt(name string, flags uint32) error {
	if err := checkName(name); err != nil {
		return err
	}
	if flags&^unix.AT_REMOVEDIR != 0 {
		return linux.EINVAL
	}
	return f.with(func(dir int) error { return unix.Unlinkat(dir, name, int(flags)) })
}
