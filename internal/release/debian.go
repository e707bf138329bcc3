package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// control describes the package to Debian. It has no dependencies: the program is static. Debian requires a maintainer address,
// but the project has no mail address: this one belongs to the project's account, and the site delivers no mail to it. The
// description says where to report instead.
const control = `Package: iwarp
Version: %s
Architecture: %s
Maintainer: The goiwarp authors <goiwarp@users.noreply.github.com>
Installed-Size: %d
Section: net
Priority: optional
Homepage: https://github.com/goiwarp/iwarp
Description: RDMA over TCP and SCTP, in user space
 The tool of the Go library iwarp, an implementation of iWARP (RFC 5040, 5041
 and 5044) without kernel modules or special hardware. It pings and measures
 RDMA peers, copies files by RDMA, and tests servers with hostile peers. It
 interoperates with rping and with the soft-iWARP driver of Linux.
 .
 The maintainers have no address for mail: report bugs, and vulnerabilities in
 private, at the homepage.
`

// debianVersion returns the version in the form that Debian sorts correctly: a release candidate comes before its release.
func debianVersion(version string) string {
	return strings.Replace(strings.TrimPrefix(version, "v"), "-", "~", 1)
}

// debianName returns where a file of the archives is installed on Debian; "" means nowhere.
func debianName(name string) string {
	switch dir, base := path.Split(name); {
	case name == "iwarp":
		return "usr/bin/iwarp"
	case dir == "man/man1/":
		return "usr/share/man/man1/" + base + ".gz"
	case name == "completions/iwarp.bash":
		return "usr/share/bash-completion/completions/iwarp"
	case name == "completions/_iwarp":
		return "usr/share/zsh/vendor-completions/_iwarp"
	case name == "completions/iwarp.fish":
		return "usr/share/fish/vendor_completions.d/iwarp.fish"
	case name == "README.md":
		return "usr/share/doc/iwarp/README.md"
	case name == "CHANGELOG.md":
		return "usr/share/doc/iwarp/changelog.gz"
	}
	return ""
}

// debian makes a Debian binary package from the files of an archive.
func (r *release) debian(t target, files []file) ([]byte, error) {
	var installed []file
	copyright := "iwarp: https://github.com/goiwarp/iwarp, under the licence Apache-2.0.\n"
	for _, f := range files {
		if f.name == "LICENSE" || f.name == "LICENSES-OF-DEPENDENCIES" {
			copyright += "\n== " + f.name + "\n\n" + string(f.data)
		}
		name := debianName(f.name)
		if name == "" {
			continue
		}
		if strings.HasSuffix(name, ".gz") {
			var err error
			if f.data, err = gzipped(f.data); err != nil {
				return nil, err
			}
		}
		f.name = name
		installed = append(installed, f)
	}
	installed = append(installed, file{name: "usr/share/doc/iwarp/copyright", data: []byte(copyright)})
	slices.SortFunc(installed, func(a, b file) int { return strings.Compare(a.name, b.name) })
	kib := 0
	var sums strings.Builder
	for _, f := range installed {
		kib += (len(f.data) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name)
	}
	about, err := tarred("./", []file{
		{name: "control", data: fmt.Appendf(nil, control, debianVersion(r.version), t.arch, kib)},
		{name: "md5sums", data: []byte(sums.String())},
	}, r.time)
	if err != nil {
		return nil, err
	}
	content, err := tarred("./", installed, r.time)
	if err != nil {
		return nil, err
	}
	return arArchive([]file{
		{name: "debian-binary", data: []byte("2.0\n")},
		{name: "control.tar.gz", data: about},
		{name: "data.tar.gz", data: content},
	}, r.time), nil
}

// arArchive returns an ar(5) archive, the format of a Debian package: see deb(5). Names have up to 16 octets.
func arArchive(members []file, at time.Time) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range members {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.name, at.Unix(), 0, 0, 0o100644, len(m.data))
		b.Write(m.data)
		if len(m.data)%2 != 0 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
