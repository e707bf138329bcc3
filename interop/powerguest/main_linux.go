// Command powerguest is the first and only process of the power-cut test's virtual
// machine: it sets up what a target needs, and runs the target until the power is cut. Its
// arguments, the kernel's arguments after "--", say what to do.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/interop/powercut"
)

// dataFile is on the disk that the cuts are about.
const (
	disk     = "/dev/vda"
	dataDir  = "/data"
	dataFile = dataDir + "/records"
)

func main() {
	err := boot()
	if err == nil {
		err = work()
	}
	fmt.Println(powercut.Sign, "the end:", err) // the machine's console
	time.Sleep(100 * time.Millisecond)          // for the console to be read
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

func work() error {
	fs := flag.NewFlagSet("powerguest", flag.ContinueOnError)
	requester := fs.String("requester", "", "`ADDRESS` of the requester")
	backing := fs.String("backing", "", "what the file is opened as: "+powercut.Backings())
	sabotage := fs.String("sabotage", powercut.Honest, "what is left out on purpose")
	faults := fs.Bool("faults", false, "run the fault cases instead")
	create := fs.Int("create", 0, "make so many files instead")
	list := fs.Bool("list", false, "say what files there are instead")
	nvme := fs.Bool("nvme", false, "serve a file as a namespace of NVMe instead")
	system := fs.String("fs", powercut.Ext4, "file system of the disk")
	if err := fs.Parse(os.Args[1:]); err != nil {
		return err
	}
	if *faults {
		return runFaults()
	}
	options := ""
	if *sabotage == powercut.NoBarrier {
		options = "nobarrier"
	}
	if err := unix.Mount(disk, dataDir, *system, unix.MS_NOATIME, options); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	switch {
	case *create > 0:
		return makeFiles(*create, *sabotage)
	case *list:
		return listFiles()
	case *nvme:
		return serveNVMe(*sabotage)
	}
	file, err := open(*backing, *sabotage)
	if err != nil {
		return err
	}
	if err := networkUp(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	fmt.Println(powercut.Sign, "serving")
	return powercut.Serve(context.Background(), *requester, file.buffer, file.durable)
}
