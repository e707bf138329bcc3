package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"path"
	"time"
)

// archive packs the files into one directory: a zip for Windows, and a tar.gz elsewhere.
func (r *release) archive(t target, files []file) (name string, data []byte, err error) {
	base := r.base(t)
	var inside []file
	for _, f := range files {
		f.name = base + "/" + f.name
		inside = append(inside, f)
	}
	if t.os == "windows" {
		data, err = zipped(inside, r.time)
		return base + ".zip", data, err
	}
	data, err = tarred("", inside, r.time)
	return base + ".tar.gz", data, err
}

func (f file) mode() int64 {
	if f.program {
		return 0o755
	}
	return 0o644
}

// tarred returns a tar.gz of the files, which belong to root, and of the directories that they need, below top: "" or "./".
func tarred(top string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	add := func(h tar.Header, data []byte) error {
		h.ModTime, h.Uname, h.Gname, h.Format = at, "root", "root", tar.FormatGNU
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	if top != "" {
		if err := add(tar.Header{Typeflag: tar.TypeDir, Name: top, Mode: 0o755}, nil); err != nil {
			return nil, err
		}
	}
	there := make(map[string]bool)
	for _, f := range files {
		for _, dir := range directories(f.name) {
			if there[dir] {
				continue
			}
			there[dir] = true
			if err := add(tar.Header{Typeflag: tar.TypeDir, Name: top + dir + "/", Mode: 0o755}, nil); err != nil {
				return nil, err
			}
		}
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: top + f.name, Mode: f.mode(), Size: int64(len(f.data))}, f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// directories returns the directories that lead to a file, from the top.
func directories(name string) []string {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	return append(directories(dir), dir)
}

// zipped returns a zip of the files.
func zipped(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		part, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()})
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// gzipped compresses data, with neither a name nor a time in the header.
func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
