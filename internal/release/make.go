package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sumsName is the name of the file with the sums of all others, as sha256sum -c reads them.
const sumsName = "SHA256SUMS"

// A file is a file in an archive or a package. Files that are not programs are readable by all.
type file struct {
	name    string
	data    []byte
	program bool
}

// make makes all files of the release.
func (r *release) make(ctx context.Context) error {
	if err := os.MkdirAll(r.out, 0o777); err != nil {
		return err
	}
	old, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	if len(old) > 0 {
		return fmt.Errorf("%s is not empty: choose another directory, or remove what is in it", r.out)
	}
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	manuals, err := r.manuals(ctx, scratch)
	if err != nil {
		return err
	}
	texts, err := r.texts()
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		path := filepath.Join(scratch, t.os+"-"+t.arch, t.program())
		if err := r.build(ctx, t, path); err != nil {
			return err
		}
		if err := r.pack(ctx, t, path, manuals, texts); err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
	}
	return r.sum()
}

// texts returns the documents that go into each archive.
func (r *release) texts() ([]file, error) {
	var texts []file
	for _, name := range []string{"README.md", "CHANGELOG.md", "LICENSE"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		texts = append(texts, file{name: name, data: data})
	}
	return texts, nil
}

// base returns the name of the files for a platform, without the suffix of the format.
func (r *release) base(t target) string {
	return fmt.Sprintf("iwarp_%s_%s_%s", strings.TrimPrefix(r.version, "v"), t.os, t.arch)
}

// pack makes the files of a platform from its program.
func (r *release) pack(ctx context.Context, t target, path string, manuals, texts []file) error {
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	bill, err := r.bill(t, info, program)
	if err != nil {
		return err
	}
	if err := r.write(r.base(t)+".cdx.json", bill); err != nil {
		return err
	}
	licences, err := r.licences(ctx, info)
	if err != nil {
		return err
	}
	files := []file{{name: t.program(), data: program, program: true}, {name: "LICENSES-OF-DEPENDENCIES", data: licences}}
	files = append(append(files, texts...), manuals...)
	name, archive, err := r.archive(t, files)
	if err != nil {
		return err
	}
	if err := r.write(name, archive); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	deb, err := r.debian(t, files)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("iwarp_%s_%s.deb", debianVersion(r.version), t.arch), deb)
}

func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o666)
}

// sum writes the sums of all files, sorted by name.
func (r *release) sum() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		h := sha256.New()
		f, err := os.Open(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		_, err = io.Copy(h, f)
		_ = f.Close() // it was only read
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", h.Sum(nil), e.Name())
	}
	return r.write(sumsName, []byte(sums.String()))
}
