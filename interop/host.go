package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// hostTools lists the programs that the lab needs, and the packages that contain them.
var hostTools = []struct{ program, pkg string }{
	{"qemu-system-x86_64", "qemu-system-x86"},
	{"gcc", "gcc"},
	{"gcc-12", "gcc-12"}, // which Debian's kernels are built with
	{"make", "make"},
	{"strip", "binutils"},
	{"dpkg", "dpkg"},
	{"tar", "tar"},
	{"xz", "xz-utils"},
	{"tshark", "tshark"},
	{"mke2fs", "e2fsprogs"},
	{"mkfs.minix", "util-linux"},
}

// hostFiles lists the other files that the lab needs.
var hostFiles = []struct{ file, pkg string }{
	{"/usr/include/x86_64-linux-gnu/sys/types.h", "libc6-dev"},
	{"/usr/share/seabios/bios-256k.bin", "seabios"},
	{"/usr/lib/x86_64-linux-gnu/libelf.so.1", "libelf1"}, // for the kernel's objtool
}

// prepareHost checks that the programs that the host needs are installed. With install, it
// installs missing ones; otherwise its error says how to install them.
func prepareHost(ctx context.Context, install bool) error {
	if install && listsAreOld() {
		if err := run(ctx, "", "apt-get", "-qq", "update"); err != nil {
			return err
		}
	}
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	how := "apt-get install --no-install-recommends " + strings.Join(missing, " ")
	if !install {
		return fmt.Errorf("programs are missing: as root, run\n\t%s", how)
	}
	fmt.Println("#", how)
	if err := os.Setenv("DEBIAN_FRONTEND", "noninteractive"); err != nil {
		return err
	}
	if err := run(ctx, "", "apt-get", append([]string{"-qq", "-y", "--no-install-recommends", "install"}, missing...)...); err != nil {
		return err
	}
	if still := missingPackages(); len(still) > 0 {
		return errors.New("still missing after installation: " + strings.Join(still, " "))
	}
	return nil
}

// listsAreOld reports whether apt may know packages that the archive no longer has.
func listsAreOld() bool {
	files, err := filepath.Glob("/var/lib/apt/lists/*_Packages*")
	if err != nil || len(files) == 0 {
		return true
	}
	st, err := os.Stat("/var/lib/apt/lists")
	return err != nil || time.Since(st.ModTime()) > 24*time.Hour
}

func missingPackages() []string {
	var missing []string
	for _, t := range hostTools {
		if _, err := exec.LookPath(t.program); err != nil {
			missing = append(missing, t.pkg)
		}
	}
	for _, f := range hostFiles {
		if _, err := os.Stat(f.file); err != nil {
			missing = append(missing, f.pkg)
		}
	}
	return missing
}
