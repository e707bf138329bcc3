package dirfs

import (
	"time"

	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"
	"golang.org/x/sys/unix"
)

func (f *file) stat() (*unix.Stat_t, error) {
	st := new(unix.Stat_t)
	err := f.with(func(fd int) error { return unix.Fstatat(fd, "", st, unix.AT_EMPTY_PATH) })
	return st, err
}

func (f *file) qid(st *unix.Stat_t) p9.QID {
	path := st.Ino
	if other := st.Dev ^ f.device; other != 0 {
		path ^= other * 0x9E3779B97F4A7C15
	}
	return p9.QID{Type: p9.FileMode(st.Mode).QIDType(), Path: path}
}

// GetAttr returns all attributes of the inode that Linux's stat returns.
func (f *file) GetAttr(p9.AttrMask) (p9.QID, p9.AttrMask, p9.Attr, error) {
	st, err := f.stat()
	if err != nil {
		return p9.QID{}, p9.AttrMask{}, p9.Attr{}, err
	}
	valid := p9.AttrMask{
		Mode: true, NLink: true, UID: true, GID: true, RDev: true, ATime: true, MTime: true, CTime: true,
		INo: true, Size: true, Blocks: true,
	}
	return f.qid(st), valid, p9.Attr{
		Mode: p9.FileMode(st.Mode), UID: p9.UID(st.Uid), GID: p9.GID(st.Gid),
		NLink: p9.NLink(st.Nlink), RDev: p9.Dev(st.Rdev), Size: uint64(st.Size),
		BlockSize: uint64(st.Blksize), Blocks: uint64(st.Blocks),
		ATimeSeconds: uint64(st.Atim.Sec), ATimeNanoSeconds: uint64(st.Atim.Nsec),
		MTimeSeconds: uint64(st.Mtim.Sec), MTimeNanoSeconds: uint64(st.Mtim.Nsec),
		CTimeSeconds: uint64(st.Ctim.Sec), CTimeNanoSeconds: uint64(st.Ctim.Nsec),
	}, nil
}

// SetAttr changes the owner before the mode, because a new owner clears bits of the mode, and the times last.
func (f *file) SetAttr(valid p9.SetAttrMask, attr p9.SetAttr) error {
	return f.with(func(fd int) error {
		if valid.Size {
			if err := f.truncate(fd, attr.Size); err != nil {
				return err
			}
		}
		if valid.UID || valid.GID {
			if err := chown(fd, valid, attr); err != nil {
				return err
			}
		}
		if valid.Permissions {
			if err := unix.Chmod(self(fd), uint32(attr.Permissions)&0o7777); err != nil {
				return err
			}
		}
		if valid.ATime || valid.MTime {
			return utimes(fd, valid, attr)
		}
		return nil
	})
}

func (f *file) truncate(fd int, size uint64) error {
	if size > 1<<63-1 {
		return unix.EINVAL
	}
	if o := f.opened.Load(); o != nil && o.writable {
		return control(o.desc, func(fd int) error { return unix.Ftruncate(fd, int64(size)) })
	}
	return unix.Truncate(self(fd), int64(size))
}

func chown(fd int, valid p9.SetAttrMask, attr p9.SetAttr) error {
	uid, gid := -1, -1
	if valid.UID {
		uid = int(attr.UID)
	}
	if valid.GID {
		gid = int(attr.GID)
	}
	return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH)
}

func utimes(fd int, valid p9.SetAttrMask, attr p9.SetAttr) error {
	atime, err := timespec(valid.ATime, valid.ATimeNotSystemTime, attr.ATimeSeconds, attr.ATimeNanoSeconds)
	if err != nil {
		return err
	}
	mtime, err := timespec(valid.MTime, valid.MTimeNotSystemTime, attr.MTimeSeconds, attr.MTimeNanoSeconds)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, self(fd), []unix.Timespec{atime, mtime}, 0)
}

// timespec returns a time for utimensat: a given time, now, or none.
func timespec(valid, given bool, sec, nsec uint64) (unix.Timespec, error) {
	switch {
	case !valid:
		return unix.Timespec{Nsec: unix.UTIME_OMIT}, nil
	case !given:
		return unix.Timespec{Nsec: unix.UTIME_NOW}, nil
	case nsec >= 1e9:
		return unix.Timespec{}, unix.EINVAL
	}
	return unix.TimeToTimespec(time.Unix(int64(sec), int64(nsec)))
}

// StatFS describes the file system that the file is on.
func (f *file) StatFS() (p9.FSStat, error) {
	var st unix.Statfs_t
	if err := f.with(func(fd int) error { return unix.Fstatfs(fd, &st) }); err != nil {
		return p9.FSStat{}, err
	}
	return p9.FSStat{
		Type: uint32(st.Type), BlockSize: uint32(st.Bsize), Blocks: st.Blocks, BlocksFree: st.Bfree, BlocksAvailable: st.Bavail,
		Files: st.Files, FilesFree: st.Ffree, FSID: uint64(uint32(st.Fsid.Val[0])) | uint64(uint32(st.Fsid.Val[1]))<<32,
		NameLength: uint32(st.Namelen),
	}, nil
}

// SetXattr sets an extended attribute.
func (f *file) SetXattr(name string, data []byte, flags p9.XattrFlags) error {
	return f.with(func(fd int) error { return unix.Setxattr(self(fd), name, data, int(flags)) })
}

// RemoveXattr removes an extended attribute.
func (f *file) RemoveXattr(name string) error {
	return f.with(func(fd int) error { return unix.Removexattr(self(fd), name) })
}

// GetXattr is refused: see the limits of the server in the package's documentation.
func (*file) GetXattr(string) ([]byte, error) { return nil, linux.EOPNOTSUPP }

// ListXattrs is refused like GetXattr.
func (*file) ListXattrs() ([]string, error) { return nil, linux.EOPNOTSUPP }
