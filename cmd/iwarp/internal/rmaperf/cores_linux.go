package rmaperf

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// allowed returns the processors on which the process may run.
var allowed = sync.OnceValues(func() (set unix.CPUSet, err error) {
	err = unix.SchedGetaffinity(0, &set)
	return set, err
})

// useCores makes all threads of the process run on the first n of its processors, with as many Ps; 0: on all
// processors. Threads that start later inherit that.
func useCores(n int) error {
	all, err := allowed()
	if err != nil {
		return err
	}
	if n == 0 || n > all.Count() {
		n = all.Count()
	}
	var set unix.CPUSet
	for i, left := 0, n; left > 0; i++ {
		if all.IsSet(i) {
			set.Set(i)
			left--
		}
	}
	runtime.GOMAXPROCS(n)
	for range 2 { // a thread may start during the first round
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}
