package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeCPIO writes the tree below root in the format of the kernel's initramfs: cpio's
// "newc" format, every number eight hexadecimal digits, everything padded to four octets.
func writeCPIO(out io.Writer, root string) error {
	w := bufio.NewWriterSize(out, 1<<20)
	inode := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		inode++
		return writeEntry(w, path, name, inode)
	})
	if err != nil {
		return err
	}
	writeHeader(w, "TRAILER!!!", 0, 0, 0)
	return w.Flush()
}

const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeLink = 0o120000
)

func writeEntry(w *bufio.Writer, path, name string, inode int) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	mode := int(st.Mode().Perm())
	var data []byte
	switch st.Mode().Type() {
	case fs.ModeDir:
		mode |= typeDir
	case fs.ModeSymlink:
		var to string
		to, err = os.Readlink(path)
		mode, data = mode|typeLink, []byte(to)
	case 0:
		mode |= typeFile
		data, err = os.ReadFile(path)
	default:
		err = fmt.Errorf("%s: neither file, folder nor link", path)
	}
	if err != nil {
		return err
	}
	writeHeader(w, name, inode, mode, len(data))
	_, _ = w.Write(data) // a bufio.Writer keeps its error until Flush
	pad(w, len(data))
	return nil
}

func writeHeader(w *bufio.Writer, name string, inode, mode, size int) {
	const uid, gid, links, mtime, major, minor, rmajor, rminor, check = 0, 0, 1, 0, 0, 0, 0, 0, 0
	fmt.Fprintf(w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		inode, mode, uid, gid, links, mtime, size, major, minor, rmajor, rminor, len(name)+1, check, name)
	pad(w, 110+len(name)+1)
}

// pad writes zeros after n octets, up to a multiple of four.
func pad(w *bufio.Writer, n int) {
	_, _ = w.Write(make([]byte, -n&3)) // as above
}
