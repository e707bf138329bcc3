package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// licenceName matches the names of the files in which a module grants permissions or requires notices.
var licenceName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)(\.[a-z]+)?$`)

// licences returns the texts that must accompany a program, because it contains code of these modules, and of Go.
func (r *release) licences(ctx context.Context, info *debug.BuildInfo) ([]byte, error) {
	var b strings.Builder
	b.WriteString("The program iwarp contains code of the Go project, and of these modules. Their licences and notices follow.\n\n")
	for _, m := range info.Deps {
		fmt.Fprintf(&b, "  %s %s\n", m.Path, m.Version)
	}
	goroot, err := r.inTree(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := addLicences(&b, "Go, "+info.GoVersion, goroot); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		dir, err := r.inTree(ctx, "go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		if err != nil {
			return nil, err
		}
		if err := addLicences(&b, m.Path+" "+m.Version, dir); err != nil {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}

// addLicences adds the texts in a directory.
func addLicences(b *strings.Builder, of, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(b, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 78), of, e.Name(), strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"))
	}
	if !found {
		return fmt.Errorf("%s: there is no licence in %s", of, dir)
	}
	return nil
}
