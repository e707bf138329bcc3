package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// powerSeries is the kernel of the machines whose power is cut.
const powerSeries = "6.1"

// A slimImage is an image from which a machine boots in three seconds without KVM: the
// uncompressed kernel, which need not be decompressed in emulation, and a few modules.
type slimImage struct {
	vmlinux string
	modules string // a folder
}

// cutModules are the modules that a machine whose power is cut needs; their dependencies are added.
var cutModules = []string{"virtio_pci", "virtio_blk", "virtio_net", "crc32c_generic", "ext4", "minix"}

// faultModules also contains the modules for persistent memory.
var faultModules = append(cutModules[:len(cutModules):len(cutModules)], "nfit", "nd_pmem")

// slim makes the image, unless the cache already contains it.
func (l *lab) slim(ctx context.Context) (*slimImage, error) {
	pkg, err := hostApt.dependency(ctx, metapackages[powerSeries].image, "linux-image-")
	if err != nil {
		return nil, err
	}
	release := strings.TrimPrefix(pkg, "linux-image-")
	dir := filepath.Join(l.cache, "slim-"+release)
	image := &slimImage{vmlinux: filepath.Join(dir, "vmlinux"), modules: filepath.Join(dir, "modules")}
	stamp := filepath.Join(dir, "made-from")
	made := fmt.Sprintf("%s %q\n", pkg, faultModules)
	if was, err := os.ReadFile(stamp); err == nil && string(was) == made {
		return image, nil
	}
	unlock, err := l.lock(ctx, l.cache)
	if err != nil {
		return nil, err
	}
	defer unlock()
	work := filepath.Join(dir, "build")
	if err := errors.Join(os.RemoveAll(dir), store{dir: filepath.Join(l.cache, "debs")}.unpack(ctx, work, pkg)); err != nil {
		return nil, err
	}
	if err := unpackKernel(ctx, filepath.Join(work, "boot/vmlinuz-"+release), image.vmlinux); err != nil {
		return nil, err
	}
	if err := pickModules(filepath.Join(work, "lib/modules", release), image.modules, faultModules); err != nil {
		return nil, err
	}
	return image, errors.Join(os.RemoveAll(work), os.WriteFile(stamp, []byte(made), 0o644))
}

// unpackKernel extracts the actual kernel from the file that boot loaders load. The format of that
// file is described in Documentation/arch/x86/boot.rst of the kernel's source.
func unpackKernel(ctx context.Context, from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	const setupSectors, header, payload = 0x1f1, 0x202, 0x248
	if len(b) < payload+8 || string(b[header:header+4]) != "HdrS" {
		return fmt.Errorf("%s is no kernel", from)
	}
	at := (uint64(b[setupSectors])+1)*512 + uint64(binary.LittleEndian.Uint32(b[payload:]))
	n := uint64(binary.LittleEndian.Uint32(b[payload+4:]))
	if at+n > uint64(len(b)) {
		return fmt.Errorf("%s is cut", from)
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "xz", "-dc", "--single-stream") // four octets more follow
	cmd.Stdin, cmd.Stdout = bytes.NewReader(b[at:at+n]), out
	if err := errors.Join(cmd.Run(), out.Close()); err != nil {
		return fmt.Errorf("unpacking %s: %w", from, err)
	}
	return nil
}

// moduleOrder is the file that lists the modules of a folder in the order of loading.
const moduleOrder = "order"

// pickModules copies modules and their dependencies.
func pickModules(from, to string, names []string) error {
	files := make(map[string]string)
	err := filepath.WalkDir(from, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			files[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if err != nil {
		return err
	}
	var order []string
	var pick func(name string) error
	pick = func(name string) error {
		if slices.Contains(order, name) {
			return nil
		}
		needs, err := needsOf(files[name])
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, n := range needs {
			if err := pick(n); err != nil {
				return err
			}
		}
		order = append(order, name)
		return copyFile(files[name], filepath.Join(to, name+".ko"), 0o644)
	}
	for _, name := range names {
		if err := pick(name); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(to, moduleOrder), []byte(strings.Join(order, "\n")), 0o644)
}

// needsOf reads from a module which other modules it needs.
func needsOf(module string) ([]string, error) {
	f, err := elf.Open(module)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("%s is no module", module)
	}
	info, err := s.Data()
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(info), "\x00") {
		if needs, ok := strings.CutPrefix(line, "depends="); ok && needs != "" {
			return strings.Split(strings.ReplaceAll(needs, "-", "_"), ","), nil
		}
	}
	return nil, nil
}

// buildInitramfs writes an initramfs with the target's program and modules.
func (p *power) buildInitramfs(ctx context.Context, modules []string) error {
	root, err := os.MkdirTemp("", "iwarp-power-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := build(ctx, "", filepath.Join(root, "init"), "build", "github.com/goiwarp/iwarp/interop/powerguest"); err != nil {
		return err
	}
	if err := pickModules(p.image.modules, filepath.Join(root, "modules"), modules); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(root, "dev"), 0o755); err != nil {
		return err
	}
	out, err := os.Create(p.initramfs)
	if err != nil {
		return err
	}
	return errors.Join(writeCPIO(out, root), out.Close())
}

// emptyDisk makes the image of a disk with an empty file system.
func emptyDisk(ctx context.Context, dir string, octets int64) ([]byte, error) {
	file := filepath.Join(dir, "disk")
	// Everything is made now, so that the kernel has nothing left to do when it mounts it.
	err := run(ctx, "", "mke2fs", "-q", "-t", "ext4", "-b", "4096", "-N", "64", "-J", "size=4",
		"-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", file, fmt.Sprintf("%dk", octets>>10))
	if err != nil {
		return nil, err
	}
	image, err := os.ReadFile(file)
	return image, errors.Join(err, os.Remove(file))
}
