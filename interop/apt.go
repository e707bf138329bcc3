package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An apt knows the packages of a Debian release: that of this machine, or another one.
type apt struct{ config string } // file of another release

// hostApt is the apt of this machine's release.
var hostApt apt

// args returns the arguments of a call of apt-get or apt-cache.
func (a apt) args(first string, more ...string) []string {
	args := append([]string{first}, more...)
	if a.config != "" {
		args = append([]string{"-c", a.config}, args...)
	}
	return args
}

// aptConfig makes apt use dir instead of the machine's folders.
const aptConfig = `Dir "%[1]s";
Dir::Etc "%[1]s";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
`

// aptSource is the archive of a release.
const aptSource = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian %s main\n"

// aptOf fetches the lists of a release, "" for that of this machine, into a separate folder below dir.
func aptOf(ctx context.Context, dir, release string) (apt, error) {
	if release == "" {
		return hostApt, nil
	}
	dir = filepath.Join(dir, "apt-"+release)
	a := apt{filepath.Join(dir, "config")}
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return a, err
		}
	}
	for name, text := range map[string]string{
		"config": fmt.Sprintf(aptConfig, dir), "sources.list": fmt.Sprintf(aptSource, release), "status": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return a, err
		}
	}
	return a, run(ctx, "", "apt-get", a.args("-qq", "-o", "APT::Sandbox::User=root", "update")...)
}

// A store is a folder of Debian packages. They are fetched as apt would fetch them, but
// only unpacked, never installed.
type store struct {
	dir string
	apt apt
}

// fetch makes sure that the newest version of every package is in the store and
// returns their files, in the order of the names.
func (s store) fetch(ctx context.Context, names ...string) ([]string, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	// Not in the store: apt omits packages that are in its working folder.
	uris, err := output(ctx, "/", "apt-get", s.apt.args("-qq", append([]string{"download", "--print-uris"}, names...)...)...)
	if err != nil {
		return nil, err
	}
	files := make([]string, len(names))
	var missing []string
	for line := range strings.Lines(uris) {
		f := strings.Fields(line) // 'URI' file size digest
		if len(f) < 3 {
			continue
		}
		name, _, _ := strings.Cut(f[1], "_")
		i := slices.Index(names, name)
		if i < 0 {
			continue
		}
		files[i] = filepath.Join(s.dir, f[1])
		size, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("apt-get download: size of %s: %w", name, err)
		}
		if st, err := os.Stat(files[i]); err != nil || st.Size() != size {
			missing = append(missing, name)
		}
	}
	if i := slices.Index(files, ""); i >= 0 {
		return nil, fmt.Errorf("apt knows no package %s; run apt-get update", names[i])
	}
	if len(missing) > 0 {
		// Root's apt would rather fetch as _apt, who may not write here; it says so and goes on.
		err = run(ctx, s.dir, "apt-get", s.apt.args("-qq", append([]string{"-o", "APT::Sandbox::User=root", "download"}, missing...)...)...)
	}
	return files, err
}

// unpack fetches packages and unpacks them, one over the other, below dir.
func (s store) unpack(ctx context.Context, dir string, names ...string) error {
	files, err := s.fetch(ctx, names...)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := run(ctx, "", "dpkg", "-x", f, dir); err != nil {
			return err
		}
	}
	return nil
}

// dependency returns the first package with the given prefix that pkg depends on.
func (a apt) dependency(ctx context.Context, pkg, prefix string) (string, error) {
	out, err := output(ctx, "", "apt-cache", a.args("depends", pkg)...)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: ")
		if ok && strings.HasPrefix(name, prefix) {
			return name, nil
		}
	}
	return "", fmt.Errorf("apt: %s depends on no %s*; run apt-get update", pkg, prefix)
}

// libraries returns the library packages that the packages need, directly or not.
func (a apt) libraries(ctx context.Context, pkgs ...string) ([]string, error) {
	args := []string{
		"--recurse", "--no-recommends", "--no-suggests", "--no-conflicts",
		"--no-breaks", "--no-replaces", "--no-enhances",
	}
	out, err := output(ctx, "", "apt-cache", a.args("depends", append(args, pkgs...)...)...)
	if err != nil {
		return nil, err
	}
	var libs []string
	for line := range strings.Lines(out) {
		name := strings.TrimSpace(line)
		if line[0] != ' ' && isLibrary(name) {
			libs = append(libs, name)
		}
	}
	slices.Sort(libs)
	return a.onlyReal(ctx, slices.Compact(libs))
}

func isLibrary(name string) bool {
	return (strings.HasPrefix(name, "lib") || strings.HasPrefix(name, "zlib")) &&
		!strings.Contains(name, "perl") && !strings.Contains(name, ":")
}

// onlyReal drops names that are virtual: packages without a version of their own.
func (a apt) onlyReal(ctx context.Context, names []string) ([]string, error) {
	out, err := output(ctx, "", "apt-cache", a.args("policy", names...)...)
	if err != nil {
		return nil, err
	}
	var real []string
	name := ""
	for line := range strings.Lines(out) {
		if line[0] != ' ' {
			name = strings.TrimSuffix(strings.TrimSpace(line), ":")
		}
		v, ok := strings.CutPrefix(strings.TrimSpace(line), "Candidate: ")
		if ok && v != "(none)" {
			real = append(real, name)
		}
	}
	return real, nil
}
