package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/interop/matrix"
)

// A guestSystem lists the parts of the guest's system.
type guestSystem struct {
	name      string            // of the folder of its programs in the cache
	initramfs string            // the file, in the folder of the kernel
	packages  []string          // packages with its programs; their libraries are added
	programs  []string          // the files of the packages that go into the initramfs
	modules   []string          // loaded by the guest, or by the kernel for it. The lab provides siw
	ours      map[string]string // directories of programs, by the name in the shared folder, besides guest and iwarp
}

// systems holds the guest systems by table.
var systems = map[string]*guestSystem{matrix.Matrix: &matrixSystem, matrix.NVMe: &nvmeSystem, matrix.Streams: &streamsSystem, matrix.Mounts: &mountsSystem}

// system returns the guest system for the chosen cases.
func (l *lab) system() *guestSystem { return systems[l.table] }

// matrixSystem is the guest system of the matrix.
var matrixSystem = guestSystem{
	name:      "userland",
	initramfs: "initramfs",
	packages:  []string{"rdma-core", "ibverbs-providers", "rdmacm-utils", "iproute2", "busybox-static"},
	programs:  []string{"usr/bin/rping", "usr/bin/cmtime", "usr/bin/rdma", "bin/ip", "bin/ss"},
	modules: []string{
		"virtio_pci", "9p", "9pnet_virtio", "veth", "af_packet", "crc32c_generic", "libcrc32c",
		"ib_core", "iw_cm", "ib_cm", "rdma_cm", "ib_uverbs", "rdma_ucm", "sctp",
	},
}

// devPackages lists the packages that peer.c is compiled against.
var devPackages = []string{"libibverbs-dev", "librdmacm-dev"}

//go:embed init.sh
var initScript []byte

// userland unpacks the guest's programs from a Debian release, compiles the C programs, unless the cache already
// contains them, and returns the folder.
func userland(ctx context.Context, cache, release string, sys *guestSystem) (string, error) {
	a, err := aptOf(ctx, cache, release)
	if err != nil {
		return "", err
	}
	libs, err := a.libraries(ctx, sys.packages...)
	if err != nil {
		return "", err
	}
	pkgs := slices.Concat(sys.packages, devPackages, libs)
	slices.Sort(pkgs)
	pkgs = slices.Compact(pkgs)
	s := store{filepath.Join(cache, "debs"), a}
	files, err := s.fetch(ctx, pkgs...)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, sys.name)
	if release != "" {
		dir += "-" + release
	}
	stamp := filepath.Join(dir, "made-from")
	made := fmt.Sprintf("%q\n", files)
	if was, err := os.ReadFile(stamp); err == nil && string(was) == made {
		return dir, compile(ctx, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := mergeUsr(dir); err != nil {
		return "", err
	}
	if err := s.unpack(ctx, dir, pkgs...); err != nil {
		return "", err
	}
	if err := os.WriteFile(stamp, []byte(made), 0o644); err != nil {
		return "", err
	}
	return dir, compile(ctx, dir)
}

// mergeUsr makes the links of a system whose programs and libraries are below usr, as in Debian 13 packages.
func mergeUsr(dir string) error {
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(dir, "usr", name), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join("usr", name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

//go:embed peer.c echoserver.c
var sources embed.FS

// compile compiles the C programs of the lab.
func compile(ctx context.Context, dir string) error {
	for _, name := range []string{"peer", "echoserver"} {
		text, err := sources.ReadFile(name + ".c")
		if err != nil {
			return err
		}
		src := filepath.Join(dir, name+".c")
		if err := os.WriteFile(src, text, 0o644); err != nil {
			return err
		}
		if err := run(ctx, "", "gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-I", filepath.Join(dir, "usr/include"),
			"-o", filepath.Join(dir, "usr/bin", name), src, "-L", filepath.Join(dir, libraryDirs[1]), "-L", filepath.Join(dir, libraryDirs[0]),
			"-Wl,--allow-shlib-undefined,--as-needed", "-lrdmacm", "-libverbs"); err != nil {
			return err
		}
	}
	return nil
}

// buildInitramfs assembles the guest's system and writes it to file.
func buildInitramfs(ctx context.Context, k *kernel, sys *guestSystem, user, file string) error {
	root, err := os.MkdirTemp("", "iwarp-initramfs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := errors.Join(addPrograms(sys, user, root), addProviders(user, root), addModules(ctx, k, sys, user, root), addSystem(root)); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(writeCPIO(out, root), out.Close())
}

func addPrograms(sys *guestSystem, user, root string) error {
	for _, p := range append(slices.Clone(sys.programs), "usr/bin/peer") {
		src := filepath.Join(user, p)
		if err := copyFile(src, filepath.Join(root, "usr/bin", filepath.Base(p)), 0o755); err != nil {
			return err
		}
		if err := addLibraries(src, user, root); err != nil {
			return err
		}
	}
	// The loader, and what pthread_exit opens when it is first called.
	gcc, err := findLibrary(user, "libgcc_s.so.1")
	if err != nil {
		return err
	}
	if err := copyFile(gcc, filepath.Join(root, libraryDirs[1], "libgcc_s.so.1"), 0o755); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(user, "lib64/ld-linux-x86-64.so.2"), filepath.Join(root, "lib64/ld-linux-x86-64.so.2"), 0o755); err != nil {
		return err
	}
	return copyFile(filepath.Join(user, "bin/busybox"), filepath.Join(root, "bin/busybox"), 0o755)
}

// addProviders adds the part of libibverbs that supports siw.
func addProviders(user, root string) error {
	const driver = "etc/libibverbs.d/siw.driver"
	if err := copyFile(filepath.Join(user, driver), filepath.Join(root, driver), 0o644); err != nil {
		return err
	}
	dir := filepath.Join(libraryDirs[1], "libibverbs")
	found, err := filepath.Glob(filepath.Join(user, dir, "libsiw-*.so"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("want one libsiw in %s, have %q", dir, found)
	}
	if err := copyFile(found[0], filepath.Join(root, dir, filepath.Base(found[0])), 0o755); err != nil {
		return err
	}
	return addLibraries(found[0], user, root)
}

// addModules adds the wanted modules, those that they need, and both builds of siw.
func addModules(ctx context.Context, k *kernel, sys *guestSystem, user, root string) error {
	busybox := filepath.Join(user, "bin/busybox")
	if err := decompressModules(ctx, k); err != nil {
		return err
	}
	if err := run(ctx, "", busybox, "depmod", "-b", filepath.Join(k.dir, "image"), k.release); err != nil {
		return err
	}
	deps, err := os.ReadFile(filepath.Join(k.modules(), "modules.dep"))
	if err != nil {
		return err
	}
	builtin, err := os.ReadFile(filepath.Join(k.modules(), "modules.builtin"))
	if err != nil {
		return err
	}
	to := filepath.Join(root, "lib/modules", k.release)
	for _, name := range sys.modules {
		line := moduleLine(string(deps), name)
		if line == "" && moduleLine(string(builtin), name) == "" {
			return fmt.Errorf("kernel %s has no module %s", k.release, name)
		}
		for f := range strings.FieldsSeq(strings.Replace(line, ":", " ", 1)) {
			if err := copyFile(filepath.Join(k.modules(), f), filepath.Join(to, f), 0o644); err != nil {
				return err
			}
		}
	}
	for _, variant := range []string{stock, withKnobs} {
		if err := copyFile(k.siw(variant), filepath.Join(root, "lib/siw", variant+".ko"), 0o644); err != nil {
			return err
		}
	}
	for _, f := range []string{"modules.order", "modules.builtin", "modules.builtin.modinfo"} {
		if err := copyFile(filepath.Join(k.modules(), f), filepath.Join(to, f), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return run(ctx, "", busybox, "depmod", "-b", root, k.release)
}

// decompressModules unpacks the modules of a kernel that compresses them: busybox
// cannot load compressed modules.
func decompressModules(ctx context.Context, k *kernel) error {
	var packed []string
	err := filepath.WalkDir(k.modules(), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".ko.xz") {
			packed = append(packed, path)
		}
		return err
	})
	if err != nil || len(packed) == 0 {
		return err
	}
	return run(ctx, "", "xz", append([]string{"-d", "-T0"}, packed...)...)
}

// moduleLine finds the line of a module in modules.dep or modules.builtin.
func moduleLine(list, name string) string {
	for line := range strings.Lines(list) {
		file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		base := strings.TrimSuffix(filepath.Base(file), ".ko")
		if strings.ReplaceAll(base, "-", "_") == strings.ReplaceAll(name, "-", "_") {
			return line
		}
	}
	return ""
}

// addSystem adds /init and the other parts of a busybox system.
func addSystem(root string) error {
	for _, d := range []string{"proc", "sys", "dev", "tmp", "run", "mnt", "host", "sbin", "var/run"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	for _, applet := range []string{"bin/sh", "bin/modprobe", "sbin/modprobe", "bin/insmod", "bin/mount", "bin/cp", "bin/dmesg", "bin/sysctl", "bin/reboot", "bin/umount", "bin/du", "bin/sync"} {
		if err := os.Symlink("/bin/busybox", filepath.Join(root, applet)); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/:/bin/sh\n",
		"etc/hosts":  "127.0.0.1 localhost\n::1 localhost\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(root, "init"), initScript, 0o755)
}
