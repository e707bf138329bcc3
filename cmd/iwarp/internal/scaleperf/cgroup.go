package scaleperf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// A cgroup is the directory of a cgroup that was made for a server; empty: there is none.
type cgroup string

// memoryLimits are the files with the limit, of both versions of the controller.
var memoryLimits = []string{"memory.max", "memory.limit_in_bytes"}

// newCgroup makes a cgroup, if the options request it.
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

// flags returns the flags of the node that belongs in the cgroup.
func (g cgroup) flags() []string {
	if g == "" {
		return nil
	}
	return []string{"--cgroup", string(g)}
}

// enter moves this process into a cgroup.
func enter(dir string) error { return overwrite(filepath.Join(dir, "cgroup.procs"), os.Getpid()) }

// remove removes the cgroup after its process has ended.
func (g cgroup) remove() {
	if g != "" {
		_ = os.Remove(string(g)) // if this fails, an empty cgroup is left
	}
}
