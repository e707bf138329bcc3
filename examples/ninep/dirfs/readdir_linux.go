package dirfs

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/hugelgupf/p9/p9"
	"golang.org/x/sys/unix"
)

const (
	// entryHeader is the length of an entry of Rreaddir without the name.
	entryHeader = 13 + 8 + 1 + 2
	// maxRead bounds the buffer of one call.
	maxRead = 64 << 10
)

// Readdir returns the entries after offset that fit into count octets. Offsets are those of the system's directory, which
// stay valid when entries come and go. The entries "." and ".." are omitted.
func (f *file) Readdir(offset uint64, count uint32) (entries p9.Dirents, err error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	err = f.withOpened(func(fd int) error {
		entries = nil // drop entries of an interrupted call
		if _, err := unix.Seek(fd, int64(offset), io.SeekStart); err != nil {
			return err
		}
		b := make([]byte, min(max(count, 4096), maxRead))
		for room := int(count); ; {
			n, err := unix.Getdents(fd, b)
			if err != nil || n <= 0 {
				return err
			}
			var full bool
			entries, full = appendEntries(entries, b[:n], &room)
			if full && len(entries) == 0 {
				return unix.EINVAL // an answer without entries would mean the end
			}
			if full {
				return nil
			}
		}
	})
	return entries, err
}

// appendEntries decodes linux_dirent64 structures until no room is left.
func appendEntries(entries p9.Dirents, b []byte, room *int) (p9.Dirents, bool) {
	for len(b) > 0 {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		name, _, _ := bytes.Cut(b[19:size], []byte{0})
		e := p9.Dirent{
			QID:    p9.QID{Type: qidType(b[18]), Path: binary.NativeEndian.Uint64(b)},
			Offset: binary.NativeEndian.Uint64(b[8:]),
			// Linux's client takes this for the type of its own entries.
			Type: p9.QIDType(b[18]),
			Name: string(name),
		}
		b = b[size:]
		if e.Name == "." || e.Name == ".." {
			continue
		}
		if *room -= entryHeader + len(name); *room < 0 {
			return entries, true
		}
		entries = append(entries, e)
	}
	return entries, false
}

func qidType(kind byte) p9.QIDType {
	return (p9.FileMode(kind) << 12).QIDType()
}
