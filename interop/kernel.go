package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// metapackages names the newest kernel of each series that the lab knows.
var metapackages = map[string]struct{ image, headers string }{
	"6.1":  {"linux-image-amd64", "linux-headers-amd64"},
	"6.12": {"linux-image-6.12-amd64", "linux-headers-6.12-amd64"},
}

// A kernel is one of Debian's kernels, and siw built for it: stock, and with knobs.
type kernel struct {
	series  string // 6.1
	release string // 6.1.0-56-amd64
	dir     string // image/: the unpacked package; siw-stock.ko, siw-knobs.ko
}

func (k *kernel) image() string   { return filepath.Join(k.dir, "image/boot/vmlinuz-"+k.release) }
func (k *kernel) modules() string { return filepath.Join(k.dir, "image/lib/modules", k.release) }
func (k *kernel) siw(variant string) string {
	return filepath.Join(k.dir, "siw-"+variant+".ko")
}

// kernelPackages names the packages from which a kernel is made.
type kernelPackages struct{ image, headers, common, kbuild, source string }

func findKernel(ctx context.Context, series string) (p kernelPackages, err error) {
	meta, ok := metapackages[series]
	if !ok {
		return p, fmt.Errorf("no kernel %s, only 6.1 and 6.12", series)
	}
	for _, step := range []struct {
		of, prefix string
		to         *string
	}{
		{meta.image, "linux-image-", &p.image},
		{meta.headers, "linux-headers-", &p.headers},
	} {
		if *step.to, err = hostApt.dependency(ctx, step.of, step.prefix); err != nil {
			return p, err
		}
	}
	if p.common, err = hostApt.dependency(ctx, p.headers, "linux-headers-"); err != nil {
		return p, err
	}
	if p.kbuild, err = hostApt.dependency(ctx, p.headers, "linux-kbuild-"); err != nil {
		return p, err
	}
	p.source = "linux-source-" + series
	return p, nil
}

// buildKernel unpacks the newest kernel of a series and builds siw for it, unless the
// cache already contains it.
func buildKernel(ctx context.Context, cache, series string) (*kernel, error) {
	p, err := findKernel(ctx, series)
	if err != nil {
		return nil, err
	}
	s := store{dir: filepath.Join(cache, "debs")}
	files, err := s.fetch(ctx, p.image, p.headers, p.common, p.kbuild, p.source)
	if err != nil {
		return nil, err
	}
	release := strings.TrimPrefix(p.image, "linux-image-")
	k := &kernel{series: series, release: release, dir: filepath.Join(cache, "kernel-"+release)}
	stamp := filepath.Join(k.dir, "made-from")
	made := fmt.Sprintf("%q\n%q\n", files, knobs)
	if was, err := os.ReadFile(stamp); err == nil && string(was) == made {
		return k, nil
	}
	if err := os.RemoveAll(k.dir); err != nil {
		return nil, err
	}
	if err := s.unpack(ctx, filepath.Join(k.dir, "image"), p.image); err != nil {
		return nil, err
	}
	if err := k.buildSiw(ctx, s, p); err != nil {
		return nil, err
	}
	return k, os.WriteFile(stamp, []byte(made), 0o644)
}

// buildSiw builds siw, which Debian's kernels do not include, from Debian's own source,
// once unchanged and once with knobs.
func (k *kernel) buildSiw(ctx context.Context, s store, p kernelPackages) error {
	work := filepath.Join(k.dir, "build")
	defer os.RemoveAll(work)
	if err := s.unpack(ctx, work, p.headers, p.common, p.kbuild, p.source); err != nil {
		return err
	}
	src := filepath.Join(work, "usr/src")
	headers := filepath.Join(src, p.headers)
	// The headers assume that they are where the packages install them.
	if err := edit(filepath.Join(headers, "Makefile"), edits{{"/usr/src/", src + "/"}}); err != nil {
		return err
	}
	driver := p.source + "/drivers/infiniband/sw/siw"
	if err := run(ctx, work, "tar", "-xf", filepath.Join(src, p.source+".tar.xz"), driver); err != nil {
		return err
	}
	for _, variant := range []string{stock, withKnobs} {
		dir := filepath.Join(work, variant)
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(work, driver))); err != nil {
			return err
		}
		if variant == withKnobs {
			if err := addKnobs(dir); err != nil {
				return err
			}
		}
		// Without BTF: it would need pahole, and the lab traces nothing.
		if err := run(ctx, "", "make", "-s", "-C", headers, "M="+dir, "CONFIG_RDMA_SIW=m", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"); err != nil {
			return err
		}
		if err := run(ctx, "", "strip", "-g", "-o", k.siw(variant), filepath.Join(dir, "siw.ko")); err != nil {
			return err
		}
	}
	return nil
}

// edits holds pairs of a text and its replacement.
type edits [][2]string

// edit changes a file. Every text must occur in it.
func edit(file string, changes edits) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s := string(b)
	for _, c := range changes {
		if !strings.Contains(s, c[0]) {
			return fmt.Errorf("%s has no %q: the source has changed", file, c[0])
		}
		s = strings.ReplaceAll(s, c[0], c[1])
	}
	return os.WriteFile(file, []byte(s), 0o644)
}

func allSeries() []string { return slices.Sorted(maps.Keys(metapackages)) }
