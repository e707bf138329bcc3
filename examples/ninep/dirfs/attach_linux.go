package dirfs

import (
	"github.com/hugelgupf/p9/p9"
	"golang.org/x/sys/unix"
)

type attacher struct{ root string }

// Attacher returns the directory root for p9.NewServer. An attach clears the umask of the process, because the client has applied its own.
func Attacher(root string) p9.Attacher { return attacher{root} }

// Attach opens the directory again.
func (a attacher) Attach() (p9.File, error) {
	unix.Umask(0)
	fd, err := open(a.root, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, errno(err)
	}
	f := newFile(fd)
	st, err := f.stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	f.device = st.Dev
	return f, nil
}
