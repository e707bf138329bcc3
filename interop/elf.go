package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
)

// libraryDirs lists where the unpacked packages keep their shared libraries, and where
// the guest's loader searches for them, relative to the root. The last one is for libraries
// that fio is linked with.
var libraryDirs = []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/ceph"}

// addLibraries copies every shared library that the ELF file needs, directly or not,
// from one root to the other.
func addLibraries(file, from, to string) error {
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	libs, err := f.ImportedLibraries()
	_ = f.Close() // only read
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, lib := range libs {
		dst := filepath.Join(to, libraryDirs[1], lib)
		if _, err := os.Stat(dst); err == nil {
			continue
		}
		src, err := findLibrary(from, lib)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := copyFile(src, dst, 0o755); err != nil {
			return err
		}
		if err := addLibraries(src, from, to); err != nil {
			return err
		}
	}
	return nil
}

func findLibrary(root, lib string) (string, error) {
	for _, dir := range libraryDirs {
		f := filepath.Join(root, dir, lib)
		if _, err := os.Stat(f); err == nil {
			return f, nil
		}
	}
	return "", fmt.Errorf("no library %s in the packages", lib)
}

// copyFile copies a file, or what a symbolic link points to, and makes folders.
func copyFile(src, dst string, mode os.FileMode) error {
	b, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	return os.WriteFile(dst, b, mode)
}
