package scaleperf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// A cgroup is one that was made for a server, as its directory; empty: there is none.
type cgroup string

// memoryLimits are the files with the limit, of both versions of the controller.
var memoryLimits = []string{"memory.max", "memory.limit_in_bytes"}

// newCgroup makes one, if the options ask for it.
func (o *options) newCgroup() (cgroup, error) {
	if o.cgroup == "" {
		return "", nil
	}
	dir, err := os.MkdirTemp(o.cgroup, "iwarp-scale-")
	if err != nil {
		return "", err
	}
	for _, file := range memoryLimits {
		err = overwrite(filepath.Join(dir, file), o.memory*mib)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		cgroup(dir).remove()
	}
	return cgroup(dir), err
}

// overwrite writes a number to a file of the system.
func overwrite(file string, n int) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.Itoa(n))
	return errors.Join(err, f.Close())
}

// flags are those of the node that belongs in it.
func (g cgroup) flags() []string {
	if g == "" {
		return nil
	}
	return []string{"--cgroup", string(g)}
}

// enter moves this process into a cgroup.
func enter(dir string) error { return overwrite(filepath.Join(dir, "cgroup.procs"), os.Getpid()) }

// remove removes it, when its process has ended.
func (g cgroup) remove() {
	if g != "" {
		_ = os.Remove(string(g)) // if it cannot be removed, an empty one is left
	}
}
